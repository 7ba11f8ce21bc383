"""The names behind `rankdeck.recipe`. Each is imported on first use, so a check or a tokenizer needs no torch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from workers.recipe_api.options import *  # noqa: F403
    from workers.recipe_api.refusals import *  # noqa: F403
    from workers.recipe_api.run import *  # noqa: F403
    from workers.recipe_api.text import *  # noqa: F403

# The first two need nothing, `text` NumPy (a tenth of a second), `run` torch (two seconds).
_BY_COST: Final = ("refusals", "options", "text", "run")


def __getattr__(name: str) -> Any:
    if not name.startswith("__"):
        for part in _BY_COST:
            module = import_module(f"{__name__}.{part}")
            if name in module.__all__:
                value = globals()[name] = getattr(module, name)
                return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
