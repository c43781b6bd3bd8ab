"""``python -m latentree`` is ``latentree``."""

import sys

from latentree.cli import main

if __name__ == "__main__":
    sys.exit(main())
