# run.py NAME MODULE ARGUMENT...: runs the service NAME, whose `main` is in MODULE, as its Debian package would.
import importlib
import sys

name, module = sys.argv[1:3]
sys.argv = [name, *sys.argv[3:]]
sys.exit(importlib.import_module(module).main())
