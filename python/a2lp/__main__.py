"""The command line: ``python -m a2lp …`` and ``a2lp …``."""

import sys

from . import _native


def main() -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(_native.main(["a2lp", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
