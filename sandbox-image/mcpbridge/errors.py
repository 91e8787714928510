"""What a cell catches when the host, or a server, refuses or fails."""


class ToolError(Exception):
    """A tool call failed. `server`, `tool`, and `result`: the raw result, if there is one."""

    def __init__(self, message, server=None, tool=None, result=None):
        super().__init__(message)
        self.server = server
        self.tool = tool
        self.result = result


ToolError.__module__ = "__main__"  # where cells see it: tracebacks then name it plainly


def of_host(error, server, tool):
    text = f"{error}\nHint: {error.hint}" if error.hint else str(error)
    return ToolError(text, server, tool)
