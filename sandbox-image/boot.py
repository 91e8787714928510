import sys

if sys.version_info < (3, 10):
    sys.exit("mcp-bridge needs Python 3.10 or newer in the image; this is " + sys.version.split()[0])


def importer():
    """Modules from an archive that comes in on stdin, where no file of the host's can be shown."""
    import io
    import os
    import zipfile
    from importlib.machinery import ModuleSpec

    def read(size):
        data = bytearray()
        while len(data) < size:
            piece = os.read(0, size - len(data))
            if not piece:
                sys.exit("mcp-bridge: stdin ended before the kernel had come")
            data += piece
        return data

    size = int.from_bytes(read(4), "big")
    if size > 64 << 20:
        sys.exit("mcp-bridge: what came on stdin is not the kernel")
    with zipfile.ZipFile(io.BytesIO(read(size))) as archive:
        sources = {name: archive.read(name) for name in archive.namelist()}
    root = sys.argv[1]  # cells may see other arguments

    class Importer:
        def find_spec(self, name, path=None, target=None):
            base = name.replace(".", "/")
            for file in (base + "/__init__.py", base + ".py"):
                if file in sources:
                    package = file.endswith("/__init__.py")
                    spec = ModuleSpec(name, self, origin=root + "/" + file, is_package=package)
                    spec.has_location = True  # as if it were there
                    return spec

        def create_module(self, spec):
            return None

        def exec_module(self, module):
            spec = module.__spec__
            code = sources[spec.origin[len(root) + 1 :]]
            exec(compile(code, spec.origin, "exec", dont_inherit=True), module.__dict__)

    return Importer()


if sys.argv[3] == "stdio":
    sys.meta_path.insert(0, importer())
else:
    sys.path.append(sys.argv[1])
import json

from mcpbridge import supervisor

if sys.argv[3] == "stdio":
    sys.meta_path.append(sys.meta_path.pop(0))  # what cells import is elsewhere
supervisor.main(sys.argv[3], json.loads(sys.argv[2]))
