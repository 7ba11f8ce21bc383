"""Adds the public package `rankdeck` and the tested versions to a wheel. See docs/decisions/0028-one-public-name.md."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelHook(BuildHookInterface):
    """Leaves an editable install alone: it reads `rankdeck` from the checkout, where a copy would hide it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"]["workers/sdk/rankdeck"] = "rankdeck"
            build_data["force_include"]["constraints.txt"] = "rankdeck/_internal/constraints.txt"
