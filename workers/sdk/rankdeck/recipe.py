"""Everything a recipe needs: these names are public and stay. Only Rankdeck's own processes can import them.

    from rankdeck.recipe import PreparedData, Run, Task

They are those of Rankdeck's package `workers.recipe_api`, each imported on first use: `check.py` and `tokenizer.py`
need no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workers.recipe_api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """The name as `workers.recipe_api` has it."""
    if name.startswith("__"):
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    return getattr(import_module("workers.recipe_api"), name)
