"""The REPL process: waits for cells, runs them, says how they ended.

Everything here shares its process with the user's code. So nothing here is a
guard: the supervisor enforces, this module serves.
"""

import builtins
import os
import resource
import select
import socket
import sys
import types

from . import (
    callback, cells, context, display, errors, figures, files, helptext, hooks, interrupts, lasting, modules, outputs, provided,
    sources, streams, threads, toolbox, tracebacks, wire, world,
)  # fmt: skip

# What a request to run something may say. "task" names the handler; the others
# are its arguments, optional but for the first.
PARAMS = {"cell", "task", "code", "value_limit", "context", "workspace", "mode", "limit"}

# What can be asked of the REPL: task → function(runner, cell=…, **arguments) → report.
HANDLERS = {"cell": cells.Runner.run, "save": lasting.save, "restore": lasting.restore, "keep": files.keep}

cells.EXTRAS["context"] = context.bind
provided.SHOWN["workspace"] = "workspace"

SETTLE = 0.03  # seconds without a cell after which there is time for other things


def main(channel, callback_socket, settings, mark):
    """Serve the supervisor on channel until it closes it. mark: see streams."""
    limit_memory(settings.get("data_limit"))
    guard = interrupts.Guard(lambda what: tell(channel, pid, what, runner.cell))
    guard.install()
    sys.unraisablehook = guard.on_unraisable
    sys.argv[:] = [""]  # as in a notebook: those of this process are no business of argparse in a cell
    started = threads.Threads()
    standard = streams.Standard(started.late, mark)
    client = callback.Client(callback_socket, guard)
    out = outputs.Outputs(client)
    namespace = make_namespace(client, out)
    texts = namespace["In"] = sources.Sources(namespace)
    runner = cells.Runner(namespace, out, guard, texts, world.World(namespace), started)
    runner.parts = lasting.Parts(namespace, guard, client, out, texts)
    adapt(texts)
    kept = files.Files(client)
    modules.find_in(kept.root)
    decoder = wire.Decoder()
    channel.setblocking(True)
    pid = os.getpid()
    prepared = False
    while True:
        if not prepared and not select.select([channel], [], [], SETTLE)[0]:
            prepared = True
            tracebacks.prepare()
            kept.keeper()
            display.prepare()
        data = channel.recv(1 << 16)
        if not data:
            os._exit(0)
        for payload in decoder.feed(data):
            standard.restore()
            report = kept.around(handle, runner=runner, **wire.loads(payload)["params"])
            standard.flush()
            if os.getpid() != pid:
                leave(report)
            channel.sendall(wire.pack("done", report))


def adapt(texts):
    """Have modules of Python's work in cells as they do in files, once they are imported."""
    after = hooks.AfterImport()
    sys.meta_path.insert(0, after)

    def nest(asyncio):
        from . import loops

        loops.let_run_nest(asyncio)

    def find(inspect):
        from . import getsource

        getsource.find_classes(inspect, texts)

    def send(spawn):
        from . import processes

        processes.send_definitions(spawn, texts)

    def answer(pdb):
        pdb.set_trace = world.no_debugger

    after.add("pdb", answer)
    after.add("asyncio", nest)
    after.add("inspect", find)
    after.add("multiprocessing.spawn", send)


def handle(runner, task="cell", **params):
    """Do what is asked, and return the report for the host."""
    provided.look_through(params.get("code", ""))
    return HANDLERS[task](runner, **params)


def tell(channel, pid, what, cell):
    """Tell the supervisor what has become of a SIGINT. Runs in the handler of one."""
    if os.getpid() == pid:  # else in a fork, which has the same channel
        try:
            channel.send(wire.pack(what, {"cell": cell}), socket.MSG_DONTWAIT)
        except OSError:
            pass  # the supervisor hears nothing, and acts by itself


def leave(report):
    """End a fork that a cell let run to its end: only the REPL answers the host."""
    if "error" in report:
        os.write(2, (report["error"]["traceback"] + "\n").encode(errors="replace"))
    os._exit(0 if report["status"] == "ok" else report.get("exit", 1) & 255)


def limit_memory(limit):
    """Let MemoryError come before the container's OOM killer, and die before PID 1."""
    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        if on_gvisor():  # which holds that against brk alone
            with open("/proc/self/statm") as f:
                limit += int(f.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        with open("/proc/self/oom_score_adj", "w") as f:
            f.write("500")
    except OSError:
        pass  # only a preference


def on_gvisor():
    with open("/proc/version") as f:
        return "gvisor" in f.read()


def make_namespace(client, out):
    """What a cell sees without importing: `__main__`, with our names in it."""
    main_module = types.ModuleType("__main__")
    sys.modules["__main__"] = main_module
    namespace = main_module.__dict__
    namespace.update(
        __builtins__=builtins,
        tools=toolbox.Toolbox(client),
        out=out,
        Out=outputs.Values(out),
        help=helptext.Help(),
        display=display.Display(),
        **{error.__name__: error for error in errors.ALL},
    )
    context.bind(namespace)
    figures.install(namespace["display"])
    provided.install(client, namespace)
    modules.install()
    return namespace
