"""Environments by name, and those that cannot be used."""

from __future__ import annotations

import pytest

pytest.importorskip("gymnasium", reason="the environments are made of it")

from rankdeck.recipe import ConfigError
from tests.unit.workers.recipes.clstm_ppo.made import typed_options, world_of
from workers.recipes.clstm_ppo.environments import open_world


def test_the_default_hides_what_has_to_be_remembered() -> None:
    import gymnasium

    world = world_of()
    environment = gymnasium.make("CartPole-v1")
    row = world.observations.flat(environment.reset(seed=0)[0])
    assert world.observations.size == 2 and row.tolist() == environment.reset(seed=0)[0][[0, 2]].tolist()
    environment.close()


def test_an_environment_with_other_actions_is_refused() -> None:
    import gymnasium

    class Switches(gymnasium.Env):  # type: ignore[misc, type-arg]
        observation_space = gymnasium.spaces.Discrete(3)
        action_space = gymnasium.spaces.MultiBinary(2)

    gymnasium.register("Switches-v0", Switches)
    try:
        with pytest.raises(ConfigError, match="Discrete"):
            open_world(typed_options(environment="Switches-v0"))
    finally:
        gymnasium.registry.pop("Switches-v0")
