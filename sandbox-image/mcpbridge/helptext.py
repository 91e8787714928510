"""help() that knows tools, and prints without a pager."""


class Help:
    """help(tools), help(tools.server), help(tools.server.tool), help(anything)."""

    def __call__(self, *args):
        if args and hasattr(type(args[0]), "_help"):
            print(type(args[0])._help(args[0]))  # an instance may have a tool of that name
            return
        if args and hasattr(type(getattr(args[0], "__self__", None)), "_help"):
            from .asking import described

            print(described(args[0]))  # a plain method of ours
            return
        import pydoc

        pydoc.Helper(output=_Out())(*(args or ("help",)))

    def __repr__(self):
        return "help(x): what x is and how to use it; start with help(tools)"


class _Out:
    """sys.stdout at the time of writing."""

    def write(self, text):
        print(text, end="")

    def flush(self):
        pass
