"""The local stack: LocalStack 4.14.0 made to run Colophon's template as AWS would.

What is here, each part in a module of its own:

- ``runtime_api``, ``sandbox``, ``executor``: Lambda functions as ordinary processes of this machine,
  served the Lambda Runtime API, without Docker.
- ``engine``: dynoxide in the place of DynamoDB Local.
- ``pollers``: event source mappings that run as many batches at once as they are configured for,
  deliver within milliseconds and cost nothing while there is nothing to do.
- ``policy``, ``authorization``: every call of a function or a mapping is judged by its role's own policies.
- ``callers``: no requests from web pages. ``allowed``: no programs but those that the stack command was given.
- ``gateway``: requests reach their functions byte for byte.
- ``updates``: an update of a deployed stack does what it reports, or fails.
- ``mends``: what LocalStack 4.14.0 itself does otherwise than AWS, or wrongly, one function each.
- ``endpoints``: what tests may ask and do: the functions' processes, the engine.
- ``plugin``: where LocalStack finds all of this.
- ``stack``: the command that starts, deploys, shows and ends a stack.
"""
