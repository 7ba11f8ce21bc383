"""Everything a recipe needs: these names are public and stay. Only Rankdeck's own processes can import them.

    from rankdeck.recipe import PreparedData, Run, Task

They are those of Rankdeck's package `workers.recipe_api`, each imported on first use: `check.py` and `tokenizer.py`
need no torch.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workers.recipe_api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    try:
        return getattr(import_module("workers.recipe_api"), name)
    except ModuleNotFoundError as error:
        if error.name not in ("workers", "workers.recipe_api"):
            raise  # a package of the recipe's is missing
    raise ImportError(_outside_of_rankdeck(name))


def _outside_of_rankdeck(name: str) -> str:
    """Why a recipe cannot be run like a script, and the command that starts it."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    folder = Path(main).resolve().parent if main else None
    if folder is None or not (folder / "recipe.toml").is_file():
        folder = Path("path/to/my-model")
    return (
        "Cannot import %r from rankdeck.recipe: this Python process was not started by Rankdeck. "
        "A file that imports rankdeck.recipe is part of a recipe, and Rankdeck runs it. "
        'Start it with: rankdeck train --recipe "%s"' % (name, folder)
    )
