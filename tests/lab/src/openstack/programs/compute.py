# compute.py ARGUMENT...: nova-compute with the driver `guests_on_disk`, which stands beside this file.
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.argv[0] = "nova-compute"

from nova.cmd.compute import main
from nova.servicegroup import api as servicegroup
import nova.virt

# Nova only loads drivers of this package.
nova.virt.__path__.append(here)
# Seconds to the first heartbeat. Nova has no setting for them, and its five seconds are most of a host's start.
servicegroup.INITIAL_REPORTING_DELAY = int(os.environ["FIRST_SIGN_S"])
sys.exit(main())
