"""How an environment is seen, and how one acts in it; environments by name."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="the environments are made of it")

from rankdeck.recipe import ConfigError
from tests.unit.workers.recipes.clstm_ppo.made import world_of
from workers.recipes.clstm_ppo.environments import Actions, actions_of, observations_of


def test_observations_with_limits_are_scaled_and_others_squeezed() -> None:
    from gymnasium.spaces import Box, Dict, Discrete, Sequence

    box = Box(np.array([-2.0, -np.inf], dtype=np.float32), np.array([6.0, np.inf], dtype=np.float32))
    seen = observations_of(box, "one")
    rows = np.stack([seen.flat(np.array(row, dtype=np.float32)) for row in ([-2, 0], [6, np.e - 1], [2, 1 - np.e])])
    np.testing.assert_allclose(seen.scaled(rows), [[-1, 0], [1, 1], [0, -1]], atol=1e-6)
    hidden = observations_of(box, "one", hidden="0")
    assert hidden.size == 1 and hidden.flat(np.array([3, 5], dtype=np.float32)) == [5]
    several = observations_of(Dict({"a": Discrete(3), "b": box}), "several")
    row = several.flat({"a": 1, "b": np.array([2, 0], dtype=np.float32)})
    assert several.size == 5 and row.tolist() == [0, 1, 0, 2, 0]
    with pytest.raises(ConfigError, match="are not 1 to"):
        observations_of(Sequence(Discrete(3)), "words")


def test_actions_are_drawn_as_likely_as_they_are() -> None:
    actions = Actions(3, False, first=-1)
    likely = np.log(np.tile([[0.2, 0.5, 0.3]], (20_000, 1))) + 4.0
    drawn = actions.draw(likely, actions.noise(np.random.default_rng(0), 20_000))
    np.testing.assert_allclose(np.bincount(drawn) / 20_000, [0.2, 0.5, 0.3], atol=0.02)
    assert actions.draw(likely[:1], None) == [1] and actions.played(2) == 1


def test_actions_made_of_numbers_keep_to_their_limits() -> None:
    from gymnasium.spaces import Box, MultiBinary

    limits = (np.array([[-2.0, 0.0]], dtype=np.float32), np.array([[2.0, np.inf]], dtype=np.float32))
    actions = actions_of(Box(*limits), "one")
    assert actions.continuous and actions.count == 2
    for given, played in (([0, 3], [[0, 3]]), ([5, -4], [[2, 0]]), ([-0.5, 1], [[-1, 1]])):
        np.testing.assert_allclose(actions.played(np.array(given, dtype=np.float32)), played)
    noise = actions.noise(np.random.default_rng(0), 5_000)
    drawn = actions.draw(np.tile([[1.0, 2.0, 0.0, np.log(3)]], (5_000, 1)), noise)
    np.testing.assert_allclose(drawn.std(0), [1, 3], rtol=0.05)
    with pytest.raises(ConfigError, match="Discrete"):
        actions_of(MultiBinary(3), "switches")


def test_the_default_hides_what_has_to_be_remembered() -> None:
    import gymnasium

    world = world_of()
    environment = gymnasium.make("CartPole-v1")
    row = world.observations.flat(environment.reset(seed=0)[0])
    assert world.observations.size == 2 and row.tolist() == environment.reset(seed=0)[0][[0, 2]].tolist()
    environment.close()
