"""The recurrent PPO recipe's parts, tiny, for its tests."""

from __future__ import annotations

from typing import Any

import torch

from core.recipes.catalog import get_recipe
from workers.recipes.clstm_ppo.environments import World, open_world
from workers.recipes.clstm_ppo.options import Options
from workers.recipes.clstm_ppo.playing import Player
from workers.recipes.clstm_ppo.policy import CascadedLstm, Shape


def options(**changes: Any) -> dict[str, Any]:
    """The recipe's own fields, some of them changed."""
    return {spec.name: spec.default for spec in get_recipe("clstm_ppo").fields} | changes


def typed_options(**changes: Any) -> Options:
    """The same as an object, as the recipe reads them."""
    return Options(**options(**changes))


def world_of(**changes: Any) -> World:
    """An environment; CartPole without velocities if nothing else is said."""
    return open_world(typed_options(**changes))


def player_of(world: World, hidden: int = 6) -> Player:
    """Plays with a policy that is the same each time."""
    torch.manual_seed(4)
    shape = Shape(world.observations.size, world.actions.count, world.actions.continuous, hidden)
    return Player(CascadedLstm(shape), torch.device("cpu"), seed=3, discount=0.9, reward_scale=0.5)
