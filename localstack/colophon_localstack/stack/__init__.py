"""The command behind `make up`, `down`, `logs` and the tests: it starts, deploys, shows and ends a local stack.

    python -m colophon_localstack.stack up        start and deploy; quick where nothing has changed
    python -m colophon_localstack.stack down      end exactly what was started
    python -m colophon_localstack.stack logs      the functions' log lines, as they come
    python -m colophon_localstack.stack run -- …  a stack of its own on a free port for one command, ended after it

A stack is known by its port: what it keeps is in .run/<port>/, and stack.json there tells others where it is.
"""
