# compute.py ARGUMENT...: nova-compute with the driver `guests_on_disk`, which stands beside this file.
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.argv[0] = "nova-compute"

from nova.cmd.compute import main
import nova.virt

# Nova takes drivers from this package only.
nova.virt.__path__.append(here)
sys.exit(main())
