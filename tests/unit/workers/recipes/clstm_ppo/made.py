"""Options and worlds of the recurrent PPO recipe, for its tests."""

from __future__ import annotations

from typing import Any

from core.recipes.catalog import get_recipe
from workers.recipes.clstm_ppo.environments import World, open_world
from workers.recipes.clstm_ppo.options import Options


def options(**changes: Any) -> dict[str, Any]:
    return {spec.name: spec.default for spec in get_recipe("clstm_ppo").fields} | changes


def typed_options(**changes: Any) -> Options:
    """The same as an object, as the recipe reads them."""
    return Options(**options(**changes))


def world_of(**changes: Any) -> World:
    """An environment; CartPole without velocities if nothing else is said."""
    return open_world(typed_options(**changes))
