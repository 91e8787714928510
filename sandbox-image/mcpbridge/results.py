"""`result`: the value of a cell that ends without one, as code-execution-mcp had it."""

import ast

NAME = "result"


def is_meant(module, last):
    """Whether a cell sets `result` and does nothing with it: then it is to be shown."""
    stored, loaded = (0, 0), (0, 0)
    todo = [*module.body, *([last] if last is not None else ())]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue  # another name, or another time
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if node.value is not None and any(isinstance(t, ast.Name) and t.id == NAME for t in targets):
                stored = max(stored, (node.end_lineno, node.end_col_offset))
        elif isinstance(node, ast.Name) and node.id == NAME:
            if not isinstance(node.ctx, ast.Store):
                loaded = max(loaded, (node.lineno, node.col_offset))
        todo += ast.iter_child_nodes(node)
    return stored > loaded
