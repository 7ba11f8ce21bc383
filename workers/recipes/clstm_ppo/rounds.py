"""Rollouts of a run: played when a chunk begins, handed out sequence by sequence, then dropped."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankdeck.recipe import Indices, StepSamples
from workers.recipes.clstm_ppo.grid import Grid
from workers.recipes.clstm_ppo.playing import Played, Player, Stage
from workers.recipes.clstm_ppo.policy import parts_of
from workers.recipes.clstm_ppo.ppo import Floats, advantages

# A round ends when the policy has moved this many times the target (as in OpenAI's Spinning Up).
_STOP_AT: Final = 1.5

# Episodes of three ranks come in thirds.
_ROUNDING: Final = 1e-6


# One environment's round, cut into sequences: tensors with sequences and time in front.
Column = Mapping[str, Tensor]


class EpisodeGoal:
    """A `Task.goal`: a number of episodes per device (0: no end), as the mean over synchronised ranks."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.played = 0.0

    def add(self, episodes: float, ranks: float) -> None:
        """Count a round's episodes, over all ranks, including ones that the round's end cuts off."""
        self.played += episodes / ranks

    def is_reached(self) -> bool:
        return 0 < self.wanted <= self.played + _ROUNDING

    def progress(self) -> tuple[float, str] | None:
        return (self.played / self.wanted, f"{self.played:,.10g} of {self.wanted:,} episodes") if self.wanted else None

    def counters(self) -> dict[str, float]:
        return {"episodes": self.played}

    def restore(self, counters: Mapping[str, float]) -> None:
        self.played = float(counters["episodes"])


@dataclass(slots=True)
class Rounds:
    """Hooks of the trainer.

    Attributes:
        player: Plays with the policy.
        stage: Environments to train in.
        trace: λ of the advantages.
        kl_target: Limit of the policy's movement in a round; 0 for none.
        total: Sums over the ranks that train in step.
        collective: Every rank has to make equally many passes.
        figures: The newest round over all ranks, by the names of charts.
    """

    player: Player
    stage: Stage
    grid: Grid
    trace: float
    kl_target: float
    total: Callable[[Sequence[float]], list[float]]
    collective: bool
    goal: EpisodeGoal = field(default_factory=lambda: EpisodeGoal(0))
    figures: dict[str, float] = field(default_factory=dict)
    _chunk: tuple[int, int] | None = None
    _columns: dict[int, Column] = field(default_factory=dict)
    _scale: tuple[float, float] = (0.0, 1.0)
    _moved: list[tuple[Tensor, int]] = field(default_factory=list)
    _over: bool = False

    def before_step(self, step: StepSamples) -> bool:
        """Play the episodes that the step needs; False when the policy has moved far enough in this round."""
        chunk = (step.epoch, int(step.batch[0]) // self.grid.chunk)
        begins = chunk != self._chunk
        if begins:
            self._chunk, self._columns, self._moved, self._over = chunk, {}, [], False
        columns = sorted(set(self.grid.environment(step.own).tolist()) - self._columns.keys())
        played = self._play(chunk, columns or [0]) if columns or (begins and self.collective) else None
        if begins:
            self._scale = self._come_to(played if columns else None)
        if played is not None and columns:
            self._keep(columns, *played)
        if not begins and self.kl_target > 0 and not self._over:
            self._over = self._has_moved_far()
        return not self._over

    def batch(self, samples: Indices) -> dict[str, Any]:
        """Sequences by the samples' numbers; unplayed ones are all zeros."""
        epoch = 0 if self._chunk is None else self._chunk[0]
        here = [sample // self.grid.chunk == (self._chunk or (0, -1))[1] for sample in samples.tolist()]
        columns = self.grid.environment(samples).tolist()
        sequences = self.grid.sequence(samples, self.player.seed, epoch).tolist()
        rows = [
            {name: tensor[sequence] for name, tensor in self._columns[column].items()}
            if found and column in self._columns
            else self._nothing()
            for found, column, sequence in zip(here, columns, sequences, strict=True)
        ]
        made: dict[str, Any] = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
        made["advantages"] = ((made["advantages"] - self._scale[0]) / self._scale[1]).float()
        made["parts"] = parts_of(made["fresh"].numpy())
        return made

    def note_movement(self, kl: Tensor, samples: int) -> None:
        """Note the policy's movement in a micro-batch of the current step."""
        self._moved.append((kl, samples))

    def _play(self, chunk: tuple[int, int], columns: Sequence[int]) -> tuple[Played, Floats]:
        grid, player = self.grid, self.player
        played = player.round(self.stage, grid.steps, grid.length, *chunk, columns)
        rule = (player.discount, self.trace)
        return played, advantages(played.rewards, played.values, played.after, played.ended, *rule)

    def _keep(self, columns: Sequence[int], played: Played, gained: Floats) -> None:
        sequences, length = self.grid.sequences, self.grid.length

        def cut(values: NDArray[Any]) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(values.reshape(sequences, length, *values.shape[1:])))

        for at, column in enumerate(columns):
            self._columns[column] = {
                "observed": cut(played.observed[at]),
                "fresh": cut(played.fresh[at]),
                "carried": torch.from_numpy(played.carried[at]),
                "actions": cut(played.actions[at]),
                "logs": cut(played.logs[at]),
                "values": cut(played.values[at].astype(np.float32)),
                "advantages": cut(gained[at]),
                "returns": cut((gained[at] + played.values[at]).astype(np.float32)),
            }

    def _come_to(self, played: tuple[Played, Floats] | None) -> tuple[float, float]:
        """Sum the round over all ranks: the charts' figures, and mean and spread of the advantages."""
        sums = [0.0] * 10
        if played is not None:
            round_, gained = played
            targets = gained + round_.values
            sums = [
                float(gained.size),
                float(gained.sum()),
                float(np.square(gained).sum()),
                float(targets.sum()),
                float(np.square(targets).sum()),
                float(len(round_.episodes)),
                sum(episode.reward for episode in round_.episodes),
                float(sum(episode.steps for episode in round_.episodes)),
                float(np.count_nonzero(~round_.ended[:, -1])),
                0.0,
            ]
        sums[-1] = 1.0  # counts the ranks
        count, first, second, target, target_squared, episodes, reward, steps, cut_off, ranks = self.total(sums)
        self.goal.add(episodes + cut_off, ranks)
        mean, spread = first / count, math.sqrt(max(0.0, second / count - (first / count) ** 2))
        targets_spread = target_squared / count - (target / count) ** 2
        self.figures = {"explained_variance": 1 - second / count / targets_spread} if targets_spread > 0 else {}
        if episodes:
            self.figures |= {"episode_return": reward / episodes, "episode_length": steps / episodes}
        if self.goal.wanted:
            self.figures["episodes"] = self.goal.played
        return mean, spread + 1e-8

    def _has_moved_far(self) -> bool:
        """Whether the step before moved the policy too far, over all ranks."""
        moved, self._moved = self._moved, []
        kl, samples = self.total([sum(float(kl) * n for kl, n in moved), float(sum(n for _, n in moved))])
        return samples > 0 and kl / samples > _STOP_AT * self.kl_target

    def _nothing(self) -> dict[str, Tensor]:
        """An empty sequence for the passes before the first step."""
        policy, length = self.player.policy, self.grid.length
        zeros = torch.zeros(length)
        actions = torch.zeros(length, policy.actions) if policy.continuous else torch.zeros(length, dtype=torch.int64)
        return {
            "observed": torch.zeros(length, policy.observation),
            "fresh": torch.zeros(length, dtype=torch.bool),
            "carried": policy.start(1)[0],
            "actions": actions,
            "logs": zeros,
            "values": zeros,
            "advantages": zeros.double(),
            "returns": zeros,
        }
