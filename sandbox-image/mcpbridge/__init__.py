"""The kernel of mcp-bridge: what runs inside a sandbox.

`supervisor` is PID 1 and talks with the host; it forks the process of `repl`,
in which cells run. Standard library only, Python 3.10 or newer.
"""
