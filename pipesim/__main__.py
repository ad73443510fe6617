"""``python -m pipesim``: the command line."""

import sys

from pipesim.cli.main import main

sys.exit(main())
