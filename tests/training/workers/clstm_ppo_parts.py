"""The recurrent PPO recipe's parts, tiny, for its tests."""

from __future__ import annotations

import torch

from tests.unit.workers.recipes.clstm_ppo.made import world_of as world_of
from workers.recipes.clstm_ppo.environments import World
from workers.recipes.clstm_ppo.playing import Player
from workers.recipes.clstm_ppo.policy import CascadedLstm


def player_of(world: World, hidden: int = 6) -> Player:
    """Plays with a policy that is the same each time."""
    torch.manual_seed(4)
    policy = CascadedLstm(world.observations.size, world.actions.count, world.actions.continuous, hidden)
    return Player(policy, torch.device("cpu"), seed=3, discount=0.9, reward_scale=0.5)
