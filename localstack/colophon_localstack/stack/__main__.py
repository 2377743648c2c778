from colophon_localstack.stack.command import main

raise SystemExit(main())
