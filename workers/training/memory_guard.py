"""Memory guard: a step that runs out of memory on any rank is done again by all ranks, in smaller micro-batches.

No collective is added for it, and none is left waiting. A rank that runs out of memory lets go of what it has computed
and joins the step's all-reduce with a gradient that is NaN, derived from a single sample. Every rank then sees a norm
that is not finite, asks what it means (`non_finite`), and learns of it before the optimizer moves.

That is possible until a collective of the step has begun (`Replica.in_collective`). Else the rank fails, and the host
starts all ranks again from the last checkpoint with the smaller micro-batch.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence

import torch

from core.config.batch import MOST_HALVINGS
from core.errors import MemoryShortError, PeerLostError
from core.protocol.messages import MicroBatchHalved
from workers.host_link.failures import is_out_of_memory
from workers.training.batches import MicroBatch, StepBatch
from workers.training.setup import TrainingSetup
from workers.training.step_start import StepStart


class MemoryGuard:
    """One rank's guard; the ranks of a replica group come to the same answer at each step.

    `is_short_here`: this rank ran out of memory in the current step.
    """

    def __init__(self, setup: TrainingSetup, start: StepStart) -> None:
        self._session = setup.session
        self._strategy = setup.strategy
        self._batches = setup.batches
        self._replica = setup.replica
        self._start = start
        self._short: Sequence[int] = ()
        self.is_short_here = False

    @property
    def is_short(self) -> bool:
        """Whether some rank of the replica group ran out of memory, so that the step does not count."""
        return len(self._short) > 0

    def begin_step(self) -> None:
        self._short, self.is_short_here = (), False

    def note(self, error: Exception) -> None:
        """Note that memory ran out; raise every other error again.

        Raises `MemoryShortError` where other ranks already wait for what this one does not have.
        """
        if not is_out_of_memory(error):
            raise error
        if self._replica.in_collective:
            raise self.refusal() from error
        self.is_short_here = True

    def give_back(self) -> None:
        """Free memory, once nothing refers to the failed pass's tensors."""
        gc.collect()  # exceptions and frames refer to each other
        if self._strategy.place.device.type == "cuda":
            torch.cuda.empty_cache()

    def single_sample(self, batch: StepBatch) -> MicroBatch:
        """A micro-batch to join the other ranks with: its loss times its weight is NaN."""
        return MicroBatch(batch.indices[:1], float("nan"))

    def agreed(self, short: Sequence[int]) -> None:
        self._short = short

    def smaller(self, batch: StepBatch) -> StepBatch:
        """The same samples in smaller micro-batches, for the same step.

        Where there are none left: raises `MemoryShortError` here, `PeerLostError` on ranks that had memory enough.
        """
        session, was = self._session, self._session.batch.micro
        smaller = session.batch.halved()
        if smaller is None or session.halvings >= MOST_HALVINGS:
            if self.is_short_here:
                raise self.refusal()
            raise PeerLostError("Another device ran out of memory.", "Look at that device.")
        session.batch, session.halvings = smaller, session.halvings + 1
        self._batches.micro_batch = smaller.micro
        self._start.restore()
        self.give_back()
        if self._strategy.group_rank == 0:
            self._report(was)
        return self._batches.cut_again(batch)

    def refusal(self) -> MemoryShortError:
        session = self._session
        halved = f" Halvings so far: {session.halvings}." if session.halvings else ""
        return MemoryShortError(
            f"Memory ran out at step {session.step:,} with micro-batch {session.batch.micro}.{halved}",
            "Shorten the sequence, turn on gradient checkpointing, or choose a smaller model.",
        )

    def _report(self, was: int) -> None:
        session, batch = self._session, self._session.batch
        first = 0 if self._strategy.synchronised else self._strategy.place.rank
        ranks = [first + rank for rank in self._short]
        compiled = ", and are compiled again once the run is resumed" if session.config.torch_compile else ""
        session.reporter.send(MicroBatchHalved(batch.micro, session.halvings, ranks))
        session.reporter.event(
            "alert",
            kind="out_of_memory",
            step=session.step,
            ranks=ranks,
            micro_batch=batch.micro,
            grad_accum_steps=batch.accumulation,
            title="The micro-batch was made smaller",
            cause=f"Memory ran out at step {session.step:,} with micro-batch {was}. The step was repeated with "
            f"micro-batch {batch.micro} and accumulation {batch.accumulation}; the global batch is still "
            f"{batch.global_}.",
            next_step=f"Training continues. Steps take a little longer than with larger micro-batches{compiled}.",
        )
