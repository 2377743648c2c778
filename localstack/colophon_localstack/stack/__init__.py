"""The command behind `make up`, `down`, `logs` and the tests: it starts, deploys, shows and ends a local stack.

    localstack/stack up          start and deploy; quick where nothing has changed
    localstack/stack down        end exactly what was started
    localstack/stack logs        the functions' log lines, as they come
    localstack/stack exec -- …   a command that finds the running stack by its environment variables
    localstack/stack run -- …    a stack of its own on a free port for one command, ended after it

A stack is known by its port: what it keeps is in .run/<port>/, and stack.json there tells others where it is.
"""
