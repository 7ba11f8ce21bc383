"""`rankdeck`: the window when nothing but window options are given, else the command line (which loads no Qt)."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Sequence
from typing import Final

WINDOW_OPTIONS = ("--window",)
# Nearly all of what the window needs of `core` comes with these.
BEFORE_QT: Final = ("core.run_folder.device_users", "core.recipes.main_metric")


def main(argv: Sequence[str] | None = None) -> int:
    """Open the window, or run a command; return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if is_for_window(arguments):
        # What is made by the first picture stays; looking through it is a tenth of the start.
        gc.disable()
        return _open_window(arguments)
    from core.cli import main as run_command

    return run_command(arguments)


def import_before_qt() -> None:
    """Import modules that need no Qt: shiboken reads the source of every later module, to see if it uses Qt."""
    for name in BEFORE_QT:
        importlib.import_module(name)


def _open_window(arguments: Sequence[str]) -> int:
    """Open the window, or hand the arguments to the open one, which needs little of the program."""
    import_before_qt()
    from app.single_instance import claim, with_full_paths
    from core.paths import default_runs_dir

    instance = claim(default_runs_dir(), with_full_paths(arguments))
    if instance is None:
        return 0
    from app.main import main as open_window

    return open_window(arguments, instance)


def is_for_window(arguments: Sequence[str]) -> bool:
    """Whether the arguments ask for the window: none at all, or only window options and Qt's (``-style`` …)."""
    if not arguments or arguments[0] in WINDOW_OPTIONS:
        return True
    return arguments[0].startswith("-") and not arguments[0].startswith("--") and arguments[0] != "-h"


if __name__ == "__main__":
    sys.exit(main())
