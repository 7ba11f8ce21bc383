"""Drafts of the recipes that are not shown: each recipe keeps its own settings while another one is set up."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from app.state.draft import Draft


class RecipeDrafts:
    """One `Draft` for each recipe that was left for another."""

    def __init__(self) -> None:
        self._drafts: dict[str, Draft] = {}

    def keep(self, draft: Draft) -> None:
        """Keeps what was set for the draft's recipe; replaces what was kept before."""
        if draft.recipe:
            self._drafts[draft.recipe] = draft

    def kept(self, recipe: str) -> Draft | None:
        """What was set for a recipe; None when it was never left."""
        return self._drafts.get(recipe)

    def as_dict(self) -> dict[str, Any]:
        """For the settings file, as `restore` takes it."""
        return {name: dataclasses.asdict(draft) for name, draft in self._drafts.items()}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Takes over what `as_dict` gave, from JSON; what is not a draft is passed over."""
        for name, value in values.items():
            if isinstance(value, dict):
                self._drafts[name] = dataclasses.replace(Draft.from_dict(value), recipe=name)
