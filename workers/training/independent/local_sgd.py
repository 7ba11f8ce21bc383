"""Rounds of local SGD: when ranks that step by themselves synchronise their weights, and why no stop or kill harms.

A round is due every H steps of a rank's own. The rank then casts a `Ballot`. With all ballots in, all ranks know the
same and do the same:

* one was told to stop: no rank synchronises; each commits where it stands and stops;
* a checkpoint was begun that this rank has no part in yet: it writes its part first, with the weights as they were;
* then the weights are averaged, each rank's counting by its samples of this round. A rank whose weights are not finite
  puts nothing into the mean, takes it, and starts its optimizer's state again;
* no rank has steps left: that was the last round, which takes the mean itself.

So all parts of a checkpoint are of the same round, at whatever steps, and a resumed run comes to the same next round
with the same weights. A rank that has cast its ballot begins no checkpoint, it only joins: the rank that began one has
not voted yet and will name it. A rank without data votes, with no samples, until the last round.

Costs in validation loss: docs/decisions/0015. Method: local SGD (Stich, arXiv 1805.09767) or DiLoCo (arXiv 2311.08105).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from core.errors import RankdeckError
from core.fault_points import reach
from workers.strategies import Replica, Strategy
from workers.strategies.local_sgd import LocalSgdReplica, LocalSgdStrategy


class RoundsDifferError(RankdeckError):
    title = "The devices are out of step"


class Ballot(NamedTuple):
    """One rank's row.

    Attributes:
        round: The number of its next round, from 1.
        stop: 1 when it was told to stop.
        active: 1 when it has steps left after this round.
        checkpoint: The newest that it has a part in.
        samples: Trained since the last round.
        finite: 1 when its weights are finite.
    """

    round: int
    stop: int
    active: int
    checkpoint: int
    samples: int
    finite: int


def make_local_sgd(strategy: Strategy, replica: Replica) -> LocalSgd | None:
    if isinstance(strategy, LocalSgdStrategy) and isinstance(replica, LocalSgdReplica):
        return LocalSgd(strategy, replica)
    return None


class LocalSgd:
    """One rank's rounds; the trainer asks `due` after every step and calls `synchronise` when it is.

    Attributes:
        round: Rounds done.
        over: The last round is done: all ranks are out of steps and hold the same weights.
        left_out: Ranks that the newest round left out, because their weights were not finite.
    """

    def __init__(self, strategy: LocalSgdStrategy, replica: LocalSgdReplica) -> None:
        self.round = 0
        self.over = False
        self.left_out: tuple[int, ...] = ()
        self._strategy = strategy
        self._replica = replica
        self._every = strategy.rule.every
        self._next_step = self._every
        self._samples_at = 0
        self._voted_to_stop = False
        self._costs = {"wait_s": 0.0, "bytes": 0}
        self._told = dict(self._costs)

    @property
    def bytes_a_round(self) -> int:
        """Bytes that one rank sends: a ring all-reduce sends each number 2 (W - 1) / W times (W ranks)."""
        world = self._strategy.place.world_size
        return 2 * (world - 1) * 4 * self._replica.outer.elements // world

    def begin(self, counters: Mapping[str, Any] | None, step: int, samples_seen: int) -> None:
        """Prepare the first round, on all ranks at once; `counters` is None for a fresh run."""
        self._next_step, self._samples_at = step + self._every, samples_seen
        if counters is None:
            self._replica.outer.start()
            return
        world = self._strategy.place.world_size
        saved = counters.get("dial")
        # Trained without rounds so far: copies that never met are too far apart to be averaged. Their mean had a loss
        # 0.54 to 0.61 above DDP's, the best copy 0.2 (docs/decisions/0015). So all take rank 0's.
        if saved is None:
            self._replica.outer.synchronise(float(self._strategy.place.rank == 0), plain=True)
        elif (counters.get("sync_every"), counters.get("world_size")) != (self._every, world):
            self.round = int(saved["round"])
            self._replica.outer.synchronise(1 / world, plain=True)
        else:
            self.round, self._next_step = int(saved["round"]), int(saved["next_step"])
            self._samples_at = int(saved["samples_at"])

    def due(self, step: int) -> bool:
        return step >= self._next_step

    def synchronise(
        self,
        step: int,
        samples_seen: int,
        *,
        active: bool,
        stop: bool,
        newest: Callable[[], int],
        meanwhile: Callable[[], None],
        join: Callable[[], object],
    ) -> bool:
        """Make one round.

        Args:
            step: Optimizer steps done.
            samples_seen: Samples trained.
            active: This rank has steps left.
            stop: It was told to stop.
            newest: The newest checkpoint that it has a part in.
            meanwhile: Called now and then while it waits for others; may join a checkpoint, not begin one.
            join: Writes its part into the checkpoint that is being made.

        Returns:
            False when a rank was told to stop and the weights were left as they were; the round is then due again
            after the resume.
        """
        if stop:
            self.leave()
            return False
        began = time.perf_counter()
        ballots = self._vote(self._ballot(samples_seen, active=active, stop=False, newest=newest()), meanwhile)
        if any(ballot.stop for ballot in ballots):
            self._voted_to_stop = True
            return False
        # With the weights of before the round: the other parts of that checkpoint hold those too.
        if max(ballot.checkpoint for ballot in ballots) > newest():
            join()
        self.over = not any(ballot.active for ballot in ballots)
        self._average(ballots)
        self.round += 1
        # A rank that is out of data votes before its own step says so: rounds are counted from the last one's step.
        self._next_step = (step if self.over else self._next_step) + self._every
        self._samples_at = samples_seen
        self._costs["wait_s"] += time.perf_counter() - began
        reach("after_synchronisation", self.round)
        return True

    def leave(self) -> None:
        """Tell the others that this rank stops before the next round, without waiting for them."""
        if not self._voted_to_stop and not self.over:
            self._voted_to_stop = True
            self._strategy.cast(self._ballot(self._samples_at, active=True, stop=True, newest=0))

    def counters(self) -> dict[str, Any]:
        rounds = {"round": self.round, "next_step": self._next_step, "samples_at": self._samples_at}
        return {"sync_every": self._every, "dial": rounds}

    def take_costs(self) -> dict[str, float]:
        """Costs of rounds since the last call, for a step's line."""
        new = {f"sync_{name}": cost - self._told[name] for name, cost in self._costs.items()}
        self._told = dict(self._costs)
        return {**new, "sync_round": self.round}

    def totals(self) -> dict[str, float]:
        """Rounds done and their costs in this attempt, for the line at the end."""
        return {"rounds": self.round, **self._costs}

    def _ballot(self, samples_seen: int, *, active: bool, stop: bool, newest: int) -> Ballot:
        finite = not stop and self._replica.outer.is_finite()
        return Ballot(self.round + 1, int(stop), int(active), newest, samples_seen - self._samples_at, int(finite))

    def _vote(self, ballot: Ballot, meanwhile: Callable[[], None]) -> list[Ballot]:
        # One small all-reduce over gloo, cast without waiting: while slower ranks still train, this one can join a
        # checkpoint that one of them began (`meanwhile`); that checkpoint is whole only with every rank's part.
        reach("before_ballot", self.round + 1)
        self._strategy.cast(ballot)
        ballots = [Ballot(*row) for row in self._strategy.count(meanwhile)]
        reach("after_ballot", self.round + 1)
        rounds = [ballot.round for ballot in ballots]
        if len(set(rounds)) > 1:
            raise RoundsDifferError(
                f"The ranks came to rounds {rounds} at the same time.", "Resume the run from its last checkpoint."
            )
        return ballots

    def _average(self, ballots: list[Ballot]) -> None:
        self.left_out = tuple(rank for rank, ballot in enumerate(ballots) if not ballot.finite)
        if len(self.left_out) == len(ballots) or not any(ballot.samples for ballot in ballots):
            return
        # Finite ranks without samples all hold the weights of the last round: any one of them can give those back.
        counted = [ballot.finite * ballot.samples for ballot in ballots]
        counted = counted if any(counted) else [ballot.finite for ballot in ballots]
        rank = self._strategy.place.rank
        # The last round takes the mean itself: momentum would carry the weights past where they have settled.
        self._replica.outer.synchronise(counted[rank] / sum(counted), plain=self.over)
        if rank in self.left_out:
            self._replica.optimizer.state.clear()  # its moments are not finite either
        self._costs["bytes"] += self.bytes_a_round
