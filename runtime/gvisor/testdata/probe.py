"""What the tests of this package run in a sandbox: it reports, then runs the Python it is sent."""

import json
import os
import socket
import struct
import sys

FILES = "status uid_map gid_map mountinfo limits net/dev environ cgroup version ns/cgroup ns/ipc ns/mnt ns/net ns/pid ns/user ns/uts"

report = {}
for name in FILES.split():
    path = "/proc/version" if name == "version" else "/proc/self/" + name
    try:
        if name.startswith("ns/"):
            report[name] = os.readlink(path)
        else:
            with open(path) as f:
                report[name] = f.read()
    except OSError:
        pass
data = json.dumps(report).encode()
control, callback = (socket.socket(fileno=int(n)) for n in sys.argv[-1].removeprefix("fd:").split(","))
control.sendall(struct.pack(">I", len(data)) + data)
while "echo" in sys.argv:
    callback.send(callback.recv(1 << 16))
names = {}
stream = control.makefile("rwb")
for line in stream:
    names["result"] = None
    try:
        exec(json.loads(line), names)
        reply = {"result": names["result"]}
    except BaseException as e:
        reply = {"error": f"{type(e).__name__}: {e}"}
    stream.write(json.dumps(reply).encode() + b"\n")
    stream.flush()
