"""`python -m ertrl`."""

import sys

from ertrl.cli import main

if __name__ == "__main__":
    sys.exit(main())
