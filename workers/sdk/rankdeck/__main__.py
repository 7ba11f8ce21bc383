"""The command `rankdeck`: puts Rankdeck's own packages on the path of this process only, and starts them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path


def main() -> int:
    """Opens the window, or runs a command; returns the exit code."""
    package = Path(__file__).resolve().parent
    # In a wheel; in a checkout they lie at its top.
    installed = package / "_internal"
    sys.path.insert(0, str(installed if installed.is_dir() else package.parents[2]))
    code: int = import_module("app.__main__").main()
    return code


if __name__ == "__main__":
    sys.exit(main())
