# run_masakari.py NAME MODULE ARGUMENT...: as run.py, with what Debian's Masakari lacks beside its oslo.messaging: that one makes a
# context again without saying whether deleted rows are read, which Masakari refuses.
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
