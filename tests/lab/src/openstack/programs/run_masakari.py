# run_masakari.py NAME MODULE ARGUMENT...: runs a service as run.py does, with a fix: Debian's oslo.messaging restores a context without
# saying whether deleted rows are read, which Masakari refuses.
import importlib
import sys

name, module = sys.argv[1:3]
sys.argv = [name, *sys.argv[3:]]
main = importlib.import_module(module).main

from masakari.context import RequestContext as Context

set_strictly = Context._set_read_deleted
Context.read_deleted = property(
    Context._get_read_deleted,
    lambda self, value: set_strictly(self, value or "no"),
    Context._del_read_deleted,
)
sys.exit(main())
