"""The recipes there are, kept current: a folder dropped into the person's own appears while the window is open."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Signal

from app.bridge import Feed, Send

if TYPE_CHECKING:
    from core.recipes.manifest import Recipe

REFRESH_S: Final = 1.0


class RecipeList(Feed):
    """Looks into the folders of recipes from a thread of its own; no recipe is imported.

    Attributes:
        recipes: Those that are known. What needs them before the thread has looked has them read.

    Signals:
        listed: Every recipe, usable and broken; emitted the first time and whenever something changed.
    """

    listed = Signal(object)

    @functools.cached_property
    def recipes(self) -> list[Recipe]:
        from core.recipes.catalog import find_recipes  # here: the window opens without it

        return find_recipes()

    def named(self, name: str) -> Recipe | None:
        """The recipe of that name that can be used; None where there is none."""
        return next((recipe for recipe in self.recipes if recipe.name == name and not recipe.problem), None)

    def open(self) -> None:
        """Looks every second from now on."""

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
            self.recipes = item
        self.listed.emit(item)
