"""A rank whose training code is a program of the user's own; what it does stands in `workers.script.rank`."""

import sys
from pathlib import Path


def main() -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # a host started by hand need not have it on its path
    from workers.script.rank import main as rank_main

    return rank_main()


if __name__ == "__main__":
    sys.exit(main())
