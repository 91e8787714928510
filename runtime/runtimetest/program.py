"""The program in the contract suite's sandboxes.

It connects twice, then runs the Python it gets on the first connection, one
JSON string a line, and answers each with what the code left in `result`, or
with the exception it raised.
"""

import json
import os
import socket
import sys


def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[-1].removeprefix("socket:"))
    return s


def attempt(function, *args):
    """Return "ok", or the name of the error that the call ended with."""
    try:
        function(*args)
    except OSError as e:
        return __import__("errno").errorcode.get(e.errno, str(e.errno))
    return "ok"


def echo(stream, size):
    """Send back size bytes, all of them read before the first is sent."""
    data = stream.read(size)
    stream.write(data)
    stream.flush()


control = connect().makefile("rwb")
callback = connect().makefile("rwb")
names = {"control": control, "callback": callback, "attempt": attempt, "connect": connect, "echo": echo}
for line in control:
    names["result"] = None
    try:
        exec(json.loads(line), names)
        reply = {"result": names["result"]}
    except BaseException as e:
        reply = {"error": f"{type(e).__name__}: {e}"}
    control.write(json.dumps(reply).encode() + b"\n")
    control.flush()
if "stubborn" in sys.argv:
    while True:
        __import__("time").sleep(1)
