"""List of recipes, kept current: a folder dropped into the person's own appears while the window is open."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal

from app.threads.bridge import Feed, Send
from core.errors import RankdeckError

if TYPE_CHECKING:
    from core.recipes.manifest import Recipe

REFRESH_S: Final = 1.0


class RecipeList(Feed):
    """Looks into the folders of recipes from a thread of its own; no recipe is imported.

    Signals:
        listed: Every recipe, usable and broken; emitted the first time and whenever something changed.
    """

    listed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._recipes: list[Recipe] | None = None
        self._read: dict[str, Recipe | None] = {}

    @property
    def recipes(self) -> list[Recipe]:
        """All recipes; where the thread has not looked yet, they are read."""
        if self._recipes is None:
            from core.recipes.catalog import find_recipes  # here: the window opens without it

            self._recipes = find_recipes()
        return self._recipes

    def named(self, name: str) -> Recipe | None:
        """Return the usable recipe of that name, or None. Before the first list only that one is read."""
        if self._recipes is not None:
            return next((recipe for recipe in self._recipes if recipe.name == name and not recipe.problem), None)
        if name not in self._read:
            self._read[name] = _usable(name)
        return self._read[name]

    def open(self) -> None:

        def work(stopping: threading.Event, send: Send) -> None:
            from core.recipes.catalog import find_recipes, recipes_stamp

            known: object = None
            while not stopping.is_set():
                # Taken before reading: what changes meanwhile makes another stamp, and is read again.
                stamp = recipes_stamp()
                if stamp != known and send(find_recipes()):
                    known = stamp
                stopping.wait(REFRESH_S)

        self._start("recipe list", work)

    def _on_item(self, item: object) -> None:
        if isinstance(item, list):
            self._recipes = item
        self.listed.emit(item)


def _usable(name: str) -> Recipe | None:
    from core.recipes.catalog import get_recipe

    with contextlib.suppress(RankdeckError):
        return get_recipe(name)
    return None
