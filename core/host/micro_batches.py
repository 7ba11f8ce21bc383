"""Halves the micro-batch of a run whose ranks run out of memory: they do it in place, or the host restarts them so."""

from __future__ import annotations

import logging

from core.checkpoints.store import Checkpoint
from core.config.batch import MOST_HALVINGS, Batch
from core.host.outcome import Outcome
from core.host.services import HostServices
from core.launch.resolved import ResolvedRun, resolve_on
from core.protocol.messages import MicroBatchHalved

log = logging.getLogger(__name__)


class MicroBatches:
    """The micro-batch halvings of one host, over all its attempts; `asked` is the run of the first attempt."""

    def __init__(self, services: HostServices) -> None:
        self._services = services
        self.asked: ResolvedRun | None = None
        self._heard: MicroBatchHalved | None = None
        self.halvings = 0

    def heard(self, message: MicroBatchHalved) -> None:
        """Note that ranks train with smaller micro-batches from here on; independent ones each with their own."""
        log.warning("memory ran out: ranks train with micro-batch %d", message.micro_batch)
        self.halvings = max(self.halvings, message.halvings)
        before = self._heard or message
        ranks = sorted({*before.ranks, *message.ranks})
        self._heard = MicroBatchHalved(min(before.micro_batch, message.micro_batch), self.halvings, ranks)

    async def after_attempt(self, run: ResolvedRun) -> ResolvedRun:
        heard, self._heard = self._heard, None
        return run if heard is None else await self._kept(run, heard)

    def next(self, run: ResolvedRun, outcome: Outcome) -> Batch | None:
        """The batch of a restart; None where memory is not the cause, or smaller micro-batches cannot help."""
        if outcome.failure_kind != "out_of_memory" or self.halvings >= MOST_HALVINGS or run.names_its_own_batch:
            return None
        return run.batch.halved()

    async def restart(
        self, run: ResolvedRun, batch: Batch, outcome: Outcome, checkpoint: Checkpoint | None
    ) -> ResolvedRun:
        self.halvings += 1
        cause, ranks = outcome.reported, [] if outcome.root is None else [outcome.root.rank]
        log.warning("restart with micro-batch %d: %s", batch.micro, cause)
        where = f"checkpoint {checkpoint.number} (step {checkpoint.step:,})" if checkpoint else "the beginning"
        self._services.stream.emit(
            "alert",
            kind="out_of_memory",
            ranks=ranks,
            micro_batch=batch.micro,
            grad_accum_steps=batch.accumulation,
            checkpoint=None if checkpoint is None else checkpoint.number,
            title="The run restarted with a smaller micro-batch",
            cause=f"{cause} The run continues from {where} with micro-batch {batch.micro} and accumulation "
            f"{batch.accumulation}; the global batch is still {batch.global_}.",
            next_step="Training continues. Steps take a little longer than with larger micro-batches.",
        )
        return await self._kept(run, MicroBatchHalved(batch.micro, self.halvings, ranks))

    async def _kept(self, run: ResolvedRun, halved: MicroBatchHalved) -> ResolvedRun:
        """The run with smaller micro-batches and more accumulation, also for a later resume."""
        asked, share = self.asked, run.batch.micro * run.batch.accumulation
        config = run.config.replace(batch_size=halved.micro_batch, grad_accum_steps=share // halved.micro_batch)
        if asked is not None and (run.mode, run.world_size) == (asked.mode, asked.world_size):  # no fallback's batch
            batch = {"batch_size": config.batch_size, "grad_accum_steps": config.grad_accum_steps}
            await self._services.enter_settings(**batch)
        return resolve_on(config, run.recipe, run.devices, run.platform)
