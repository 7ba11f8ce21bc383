"""Environments played with the policy: a round to learn from, or whole episodes for evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.recipes.clstm_ppo.environments import World
from workers.recipes.clstm_ppo.policy import CascadedLstm
from workers.recipes.clstm_ppo.ppo import Floats, log_likelihood, with_time_limits

# Maximum steps of an evaluation episode.
LONGEST: Final = 10_000

_ROUND, _EVALUATION = 0, 1
_TOGETHER_EVERY: Final = 32


@dataclass(frozen=True, slots=True)
class Episode:
    """A whole episode.

    Attributes:
        reward: The sum of its rewards, as the environment gave them: the return.
        summary: The environment's text about its end.
    """

    reward: float
    steps: int
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Played:
    """A round of several environments, the same number of steps each.

    Attributes:
        observed: Shape (environments, time, observation).
        fresh: The first steps of episodes, (environments, time).
        carried: The policy's state before each sequence, (environments, sequences, 3, 2, hidden).
        actions: (environments, time), or (environments, time, numbers).
        logs: Their log-likelihood then, (environments, time).
        values: The policy's values then, same shape.
        rewards: As trained on: scaled, with the value after a time limit.
        ended: Ends of episodes.
        after: The value after the last step, (environments,).
        episodes: The ones that ended in the round.
    """

    observed: NDArray[np.float32]
    fresh: NDArray[np.bool_]
    carried: NDArray[np.float32]
    actions: NDArray[Any]
    logs: NDArray[np.float32]
    values: Floats
    rewards: Floats
    ended: NDArray[np.bool_]
    after: Floats
    episodes: tuple[Episode, ...]


class Stage:
    """Environments of one kind, made as they are needed and used again; `held_out`: for evaluation."""

    def __init__(self, world: World, held_out: bool) -> None:
        self.world = world
        self._held_out = held_out
        self._made: list[Any] = []

    def begin(self, generators: Sequence[np.random.Generator]) -> tuple[list[Any], NDArray[np.float32]]:
        """An environment for each generator, which draws its seed, and what is observed first."""
        while len(self._made) < len(generators):
            self._made.append(self.world.make(self._held_out))
        environments = self._made[: len(generators)]
        seeds = [int(generator.integers(2**31)) for generator in generators]
        begun = [one.reset(seed=seed)[0] for one, seed in zip(environments, seeds, strict=True)]
        return environments, np.stack([self.world.observations.flat(observation) for observation in begun])

    def close(self) -> None:
        while self._made:
            self._made.pop().close()


@dataclass(frozen=True, slots=True)
class Player:
    """Plays with a policy, without gradients.

    Attributes:
        seed: The run's.
        discount: γ.
        reward_scale: Factor of rewards for learning.
    """

    policy: CascadedLstm
    device: torch.device
    seed: int
    discount: float
    reward_scale: float

    def round(self, stage: Stage, steps: int, length: int, epoch: int, chunk: int, columns: Sequence[int]) -> Played:
        """Play a round; it depends on the policy, the run's seed, `epoch`, `chunk` and each column, and nothing else.

        Args:
            stage: The environments.
            steps: Steps of each environment.
            length: Steps of a sequence.
            epoch: From 0.
            chunk: The chunk's number in the epoch.
            columns: Numbers of the environments, over all ranks; one to play each.
        """
        world, count = stage.world, len(columns)
        generators = [np.random.default_rng([self.seed, _ROUND, epoch, chunk, column]) for column in columns]
        environments, rows = stage.begin(generators)
        noise = np.stack([world.actions.noise(generator, steps) for generator in generators])
        carried, fresh = self.policy.start(count).to(self.device), np.ones(count, dtype=np.bool_)
        totals, lengths = np.zeros(count), np.zeros(count, dtype=np.int64)
        record: list[tuple[NDArray[Any], ...]] = []
        carried_in: list[NDArray[np.float32]] = []
        cut_off: list[tuple[int, int, NDArray[np.float32], Tensor]] = []
        episodes: list[Episode] = []
        for step in range(steps):
            if step % length == 0:
                carried_in.append(carried.float().cpu().numpy())
            seen = world.observations.scaled(rows)
            likely, values, carried = self._pass(seen, carried, fresh)
            actions = world.actions.draw(likely, noise[:, step])
            rewards, ended = np.zeros(count), np.zeros(count, dtype=np.bool_)
            for at, environment in enumerate(environments):
                observation, reward, terminated, truncated, info = environment.step(world.actions.played(actions[at]))
                rows[at] = world.observations.flat(observation)
                rewards[at] = float(reward) * self.reward_scale
                totals[at] += float(reward)
                lengths[at] += 1
                if terminated or truncated:
                    if not terminated:
                        cut_off.append((at, step, rows[at].copy(), carried[at]))
                    episodes.append(Episode(float(totals[at]), int(lengths[at]), str(info.get("summary", ""))))
                    ended[at], totals[at], lengths[at] = True, 0.0, 0
                    rows[at] = world.observations.flat(environment.reset()[0])
            record.append((seen, fresh, actions, likely, values, rewards, ended))
            fresh = ended
        # One more pass for what follows the last step, and what would have followed where only time ran out.
        seen = world.observations.scaled(np.stack([*rows, *(row for _, _, row, _ in cut_off)]))
        states = torch.stack([*carried, *(state for _, _, _, state in cut_off)])
        _, expected, _ = self._pass(seen, states, np.concatenate([fresh, np.zeros(len(cut_off), dtype=np.bool_)]))
        stacked = (np.stack(values, 1) for values in zip(*record, strict=True))
        observed, fresh, actions, likely, values, rewards, ended = stacked
        logs = log_likelihood(torch.from_numpy(likely), torch.from_numpy(actions), world.actions.continuous)
        places = np.array([(at, step) for at, step, _, _ in cut_off], dtype=np.int64).reshape(-1, 2)
        rewards = with_time_limits(rewards, places, expected[count:], self.discount)
        first = (observed, fresh, np.stack(carried_in, 1), actions, logs.numpy().astype(np.float32))
        return Played(*first, values, rewards, ended, expected[:count], tuple(episodes))

    def episodes(
        self, stage: Stage, numbers: Sequence[int], limit: int, sampled: bool, total: Callable[[float], float] | None
    ) -> list[Episode]:
        """Play one episode for each number; the same number is the same episode for the same policy.

        Args:
            stage: The environments.
            numbers: At least one.
            limit: No episode is longer.
            sampled: Actions are drawn as in training; else the likeliest is taken.
            total: Sums over the ranks, where all of them have to make equally many passes; else None.
        """
        world, count = stage.world, len(numbers)
        generators = [np.random.default_rng([self.seed, _EVALUATION, number]) for number in numbers]
        environments, rows = stage.begin(generators)
        carried, fresh = self.policy.start(count).to(self.device), np.ones(count, dtype=np.bool_)
        playing, summaries = np.ones(count, dtype=np.bool_), [""] * count
        rewards, steps = np.zeros(count), np.zeros(count, dtype=np.int64)
        for step in range(limit):
            if total is None and not playing.any():
                break
            if total is not None and step % _TOGETHER_EVERY == 0 and not total(float(playing.any())):
                break
            likely, _, carried = self._pass(world.observations.scaled(rows), carried, fresh)
            noise = np.stack([world.actions.noise(generator, 1)[0] for generator in generators]) if sampled else None
            actions = world.actions.draw(likely, noise)
            fresh[:] = False
            for at in np.flatnonzero(playing):
                taken = environments[at].step(world.actions.played(actions[at]))
                observation, reward, terminated, truncated, info = taken
                rows[at] = world.observations.flat(observation)
                rewards[at] += float(reward)
                steps[at] += 1
                playing[at] = not (terminated or truncated)
                summaries[at] = str(info.get("summary", ""))
        return [Episode(float(r), int(n), s) for r, n, s in zip(rewards, steps, summaries, strict=True)]

    def _pass(
        self, seen: NDArray[np.float32], carried: Tensor, fresh: NDArray[np.bool_]
    ) -> tuple[Floats, Floats, Tensor]:
        observed = torch.from_numpy(seen)[:, None].to(self.device)
        likely, values, carried = self.policy(observed, carried, torch.from_numpy(fresh).to(self.device))
        return likely[:, 0].double().cpu().numpy(), values[:, 0].double().cpu().numpy(), carried
