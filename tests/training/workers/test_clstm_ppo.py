"""Recurrent PPO's parts: what is carried and when it is forgotten, advantages, the loss, rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the policy is made of it")
pytest.importorskip("gymnasium", reason="the environments are made of it")

import torch
from torch import Tensor

from core.config import RunConfig
from core.errors import RankdeckError
from core.recipes.catalog import get_recipe
from core.recipes.check import check_by_recipe
from core.recipes.manifest import apply_recipe
from tests.unit.workers.recipes.clstm_ppo.made import typed_options, world_of
from workers.recipe_api import StepSamples
from workers.recipes.clstm_ppo.check import check
from workers.recipes.clstm_ppo.environments import World
from workers.recipes.clstm_ppo.grid import make_grid
from workers.recipes.clstm_ppo.playing import Player, Stage
from workers.recipes.clstm_ppo.policy import CascadedLstm, parts_of
from workers.recipes.clstm_ppo.ppo import advantages, entropy, log_likelihood, losses, with_time_limits
from workers.recipes.clstm_ppo.rounds import Rounds

pytestmark = pytest.mark.windows

# the policy


def test_a_stretch_with_beginnings_in_it_is_what_its_steps_are_one_by_one() -> None:
    torch.manual_seed(0)
    policy = CascadedLstm(3, 2, False, 5)
    observed, carried = torch.randn(4, 7, 3), torch.randn(4, 3, 2, 5)
    fresh = torch.zeros(4, 7, dtype=torch.bool)
    fresh[0, 0] = fresh[1, 3] = fresh[1, 4] = fresh[2, 6] = True
    likely, values, _ = policy(observed, carried, fresh[:, 0], parts_of(fresh.numpy()))
    for step in range(7):
        one, value, carried = policy(observed[:, step : step + 1], carried, fresh[:, step])
        torch.testing.assert_close(likely[:, step], one[:, 0])
        torch.testing.assert_close(values[:, step], value[:, 0])


def test_nothing_is_carried_from_one_episode_into_the_next() -> None:
    torch.manual_seed(0)
    policy = CascadedLstm(1, 2, False, 4)
    fresh = np.zeros((1, 6), dtype=np.bool_)
    fresh[0, 3] = True
    observed = torch.randn(1, 6, 1, requires_grad=True)
    _, values, _ = policy(observed, policy.start(1), torch.tensor([True]), parts_of(fresh))
    (before,) = torch.autograd.grad(values[0, 5], observed, retain_graph=True)
    assert before[0, :3].abs().max() == 0 and before[0, 3:].abs().min() > 0
    (memory,) = torch.autograd.grad(values[0, 2], observed)
    assert memory[0, :3].abs().min() > 0


def test_it_begins_without_a_preference() -> None:
    torch.manual_seed(0)
    likely, _, _ = CascadedLstm(4, 3, False, 16)(
        torch.randn(8, 5, 4), torch.zeros(8, 3, 2, 16), torch.ones(8, dtype=torch.bool)
    )
    assert entropy(likely, False).min() > 0.999 * np.log(3)


# the arithmetic of PPO


def test_advantages_are_the_discounted_sum_of_what_was_not_expected() -> None:
    generator = np.random.default_rng(1)
    rewards, values, after = generator.normal(size=(3, 9)), generator.normal(size=(3, 9)), generator.normal(size=3)
    ended = generator.random((3, 9)) < 0.2
    found = advantages(rewards, values, after, ended, 0.9, 0.8)
    for row in range(3):
        following = [*values[row, 1:], after[row]]
        for step in range(9):
            expected, weight = 0.0, 1.0
            for later in range(step, 9):
                goes_on = 0.0 if ended[row, later] else 1.0
                expected += weight * (rewards[row, later] + 0.9 * goes_on * following[later] - values[row, later])
                weight *= 0.9 * 0.8 * goes_on
            assert found[row, step] == pytest.approx(expected, abs=1e-12)


def test_running_out_of_time_is_worth_what_would_have_followed() -> None:
    """With exact values an episode that is cut off has no advantage anywhere; one that ends there has."""
    discount = 0.9
    rewards, worth = np.ones((1, 4)), np.full((1, 4), 1 / (1 - discount))
    ended = np.array([[False, True, False, False]])
    cut = with_time_limits(rewards, np.array([[0, 1]]), np.array([1 / (1 - discount)]), discount)
    assert np.abs(advantages(cut, worth, worth[:, 0], ended, discount, 0.95)).max() < 1e-12
    assert advantages(rewards, worth, worth[:, 0], ended, discount, 0.95)[0, 1] == pytest.approx(1 - 10)


@pytest.mark.parametrize("continuous", [False, True])
def test_likelihood_and_entropy_are_those_of_the_distribution(continuous: bool) -> None:
    torch.manual_seed(0)
    likely: Tensor = torch.randn(6, 5, 4)
    if continuous:
        each = torch.distributions.Normal(likely[..., :2], likely[..., 2:].exp())
        made: Any = torch.distributions.Independent(each, 1)
    else:
        made = torch.distributions.Categorical(logits=likely)
    actions = made.sample()
    torch.testing.assert_close(log_likelihood(likely, actions, continuous), made.log_prob(actions))
    torch.testing.assert_close(entropy(likely, continuous), made.entropy())


def ppo_batch(logs: Tensor, likely: Tensor, values: Tensor) -> dict[str, Tensor]:
    return {
        "actions": torch.zeros(likely.shape[:2], dtype=torch.int64),
        "logs": logs,
        "values": values,
        "advantages": torch.tensor([[1.0, -1.0]]),
        "returns": torch.tensor([[2.0, 0.0]]),
    }


def test_the_loss_clips_what_has_moved_far_and_in_the_favoured_direction() -> None:
    likely = torch.zeros(1, 2, 2, requires_grad=True)
    now = log_likelihood(likely, torch.zeros(1, 2, dtype=torch.int64), False).detach()
    rule = typed_options(clip=0.2, value_clip=0.0, value_weight=0.5, entropy_weight=0.01)
    values = torch.tensor([[1.0, 1.0]])

    same = losses(likely, values, ppo_batch(now, likely, values), False, rule)
    assert same["kl"] == 0 and same["clip_fraction"] == 0 and same["policy_loss"] == 0
    assert same["value_loss"] == pytest.approx(0.5) and same["entropy"].item() == pytest.approx(np.log(2))
    assert same["loss"].item() == pytest.approx(0.25 - 0.01 * np.log(2))

    moved = losses(likely, values, ppo_batch(now - np.log(1.5), likely, values), False, rule)  # ratio 1.5 in both
    assert moved["policy_loss"].item() == pytest.approx(-(1.2 - 1.5) / 2)
    assert moved["kl"].item() == pytest.approx(0.5 - np.log(1.5)) and moved["clip_fraction"] == 1
    (gradient,) = torch.autograd.grad(moved["policy_loss"], likely)
    assert gradient[0, 0].abs().max() == 0 and gradient[0, 1].abs().max() > 0


def test_values_that_moved_far_are_clipped_to_the_worse() -> None:
    likely, before = torch.zeros(1, 2, 2), torch.tensor([[0.0, 0.0]])
    now = torch.tensor([[1.5, 1.5]], requires_grad=True)
    batch = ppo_batch(torch.full((1, 2), -np.log(2)), likely, before)
    rule = typed_options(clip=0.2, value_clip=0.3, value_weight=1.0, entropy_weight=0.0)
    made = losses(likely, now, batch, False, rule)
    assert made["value_loss"].item() == pytest.approx(0.5 * ((0.3 - 2) ** 2 + 1.5**2) / 2)
    (gradient,) = torch.autograd.grad(made["value_loss"], now)
    assert gradient[0, 0] == 0 and gradient[0, 1] > 0


# rounds


def player_of(world: World) -> Player:
    """Plays with a policy that is the same each time."""
    torch.manual_seed(4)
    policy = CascadedLstm(world.observations.size, world.actions.count, world.actions.continuous, 6)
    return Player(policy, torch.device("cpu"), seed=3, discount=0.9, reward_scale=0.5)


@pytest.fixture(scope="module")
def cartpole() -> World:
    return world_of(max_episode_steps=9)


def test_what_was_played_is_what_the_policy_says_of_it(cartpole: World) -> None:
    """Likelihoods and values found step by step are those of whole sequences from what was carried into them."""
    player = player_of(cartpole)
    with torch.no_grad():
        played = player.round(Stage(cartpole, False), 32, 8, 0, 5, [0, 1, 2])
        for sequence in range(4):
            at = slice(sequence * 8, sequence * 8 + 8)
            observed, fresh = torch.from_numpy(played.observed[:, at]), played.fresh[:, at]
            carried = torch.from_numpy(played.carried[:, sequence])
            likely, values, _ = player.policy(observed, carried, torch.from_numpy(fresh[:, 0].copy()), parts_of(fresh))
            logs = log_likelihood(likely, torch.from_numpy(played.actions[:, at]), False)
            np.testing.assert_allclose(logs, played.logs[:, at], atol=1e-5)
            np.testing.assert_allclose(values, played.values[:, at], atol=1e-5)
    assert played.fresh[:, 0].all() and played.fresh.sum() >= 9
    assert (played.fresh[:, 1:] == played.ended[:, :-1]).all(), "an episode begins where one ended"
    assert {episode.steps for episode in played.episodes} <= set(range(1, 10))
    assert all(episode.reward == episode.steps for episode in played.episodes)
    cut_off = [episode for episode in played.episodes if episode.steps == 9]
    plain = np.isclose(played.rewards, player.reward_scale)
    assert cut_off and (~plain).sum() == len(cut_off) and played.ended[~plain].all()


def test_a_round_depends_on_its_number_and_not_on_who_plays_beside_it(cartpole: World) -> None:
    player, stage = player_of(cartpole), Stage(cartpole, False)
    with torch.no_grad():
        whole = player.round(stage, 16, 8, 1, 3, [0, 1, 2, 3])
        half = player.round(stage, 16, 8, 1, 3, [2, 3])
        other = player.round(stage, 16, 8, 1, 4, [2, 3])
    assert (whole.actions[2:] == half.actions).all()
    np.testing.assert_allclose(whole.observed[2:], half.observed, atol=1e-6)
    np.testing.assert_allclose(whole.rewards[2:], half.rewards, atol=1e-6)
    assert not np.allclose(half.observed[:, 0], other.observed[:, 0])
    assert not np.allclose(half.observed[0, 0], half.observed[1, 0])


def rounds_of(world: World, kl_target: float = 0.0) -> tuple[Rounds, list[list[float]]]:
    """Rounds of 2 passes over 2 sequences of 4 environments, and what they added up over ranks."""
    told: list[list[float]] = []

    def total(values: Any) -> list[float]:
        told.append(list(values))
        return list(values)

    grid = make_grid(chunk=16, block=64, batch=4, passes=2, length=8)
    return Rounds(player_of(world), Stage(world, False), grid, 0.95, kl_target, total, collective=False), told


def step_of(number: int, epoch: int = 0, own: slice = slice(None)) -> StepSamples:
    batch = np.arange(number * 4, number * 4 + 4)
    return StepSamples(epoch, batch, batch[own])


def test_a_round_is_handed_out_with_advantages_of_mean_nought_and_spread_one(cartpole: World) -> None:
    rounds, told = rounds_of(cartpole)
    with torch.no_grad():
        assert all(rounds.before_step(step_of(number)) for number in range(4))
    assert len(told) == 1, "a round is added up once"
    batches = [rounds.batch(np.arange(number * 4, number * 4 + 4)) for number in range(4)]
    for pass_ in (batches[:2], batches[2:]):
        gained = torch.cat([batch["advantages"] for batch in pass_])
        assert gained.shape == (8, 8) and abs(float(gained.mean())) < 1e-5
        assert float(gained.std(unbiased=False)) == pytest.approx(1, abs=1e-4)
    assert rounds.figures["episode_return"] == rounds.figures["episode_length"] > 0
    assert float(rounds.batch(np.array([16]))["returns"].abs().max()) == 0, "nothing was played of another chunk"


@pytest.mark.parametrize("half", [False, True])
def test_actions_made_of_numbers_are_learned_from_too(half: bool) -> None:
    """Before the first update the policy has not moved: no ratio, no divergence; in bf16 up to its rounding."""
    world = world_of(environment="Pendulum-v1", max_episode_steps=9, hide="2")
    rounds, _ = rounds_of(world)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=half):
        assert rounds.before_step(step_of(0))
    batch = rounds.batch(np.arange(4))
    policy = player_of(world).policy
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        likely, values, _ = policy(batch["observed"], batch["carried"], batch["fresh"][:, 0], batch["parts"])
        rule = typed_options(clip=0.2, value_clip=0.0, value_weight=0.5, entropy_weight=0.0)
        made = losses(likely, values, batch, True, rule)
    assert batch["actions"].shape == (4, 8, 1) and batch["observed"].shape == (4, 8, 2)
    assert abs(made["kl"].item()) < (1e-3 if half else 1e-6)
    assert made["policy_loss"].item() == pytest.approx(-batch["advantages"].mean().item(), abs=5e-2 if half else 1e-5)
    made["loss"].backward()
    assert all(parameter.grad is not None for parameter in policy.parameters())
    nothing = rounds.batch(np.array([16]))
    assert {name: value.shape[1:] for name, value in nothing.items() if name != "parts"} == {
        name: value.shape[1:] for name, value in batch.items() if name != "parts"
    }


def test_an_environment_that_is_given_to_this_rank_on_the_way_is_played_then(cartpole: World) -> None:
    """Shares of unequal devices change; only the ranks concerned play, so nothing may be added up over all."""
    rounds, told = rounds_of(cartpole)
    with torch.no_grad():
        rounds.before_step(step_of(0, own=slice(0, 2)))
        rounds.before_step(step_of(1, own=slice(0, 3)))
        assert len(told) == 1 and float(rounds.batch(np.array([6]))["observed"].abs().max()) > 0
        assert float(rounds.batch(np.array([7]))["observed"].abs().max()) == 0


def test_the_rest_of_a_round_is_left_out_when_the_policy_has_moved_far(cartpole: World) -> None:
    rounds, _ = rounds_of(cartpole, kl_target=0.01)
    wanted = []
    with torch.no_grad():
        for number, kl in enumerate([0.014, 0.016, 0.0, 0.0, 0.0]):
            wanted.append(rounds.before_step(step_of(number)))
            rounds.note_movement(torch.tensor(kl), 4)
    assert wanted == [True, True, False, False, True], "the next round is trained again"


# the check and its package


def test_the_check_is_asked_as_a_program(tmp_path: Path) -> None:

    recipe = get_recipe("clstm_ppo")
    assert "torch" not in check.__globals__
    config = apply_recipe(RunConfig(recipe="clstm_ppo", dataset_file="none://"), recipe)
    assert "2 numbers observed" in check_by_recipe(config, recipe)[1][0]
    short = tmp_path / "short.csv"
    short.write_text("Date,Close\n2024-01-01,5\n2024-01-02,6\n", encoding="utf-8")
    options_ = {**config.options, "environment": "trading"}
    with pytest.raises(RankdeckError) as caught:
        check_by_recipe(config.replace(options=options_, dataset_file=str(short)), recipe)
    assert caught.value.title == "The price file is too short" and "short.csv" in caught.value.cause
    assert caught.value.next_step
