"""A rank whose training code is a program of the user's own; what it does stands in `workers.script.rank`."""

import sys
from pathlib import Path


def main() -> int:
    # A host started by hand need not have it on its path.
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    from workers.script.rank import main as rank_main

    return rank_main()


if __name__ == "__main__":
    sys.exit(main())
