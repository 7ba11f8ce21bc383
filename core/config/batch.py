"""The batch arithmetic: global batch = micro-batch × ranks × accumulation. Two are given, the third follows."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Final

from core.config.run_config import RunConfig
from core.errors import ConfigError

# Samples a rank works on at once where neither person nor recipe says; with only a global batch given, the most.
DEFAULT_MICRO_BATCH: Final = 8
# How often the micro-batch is halved when memory runs out, from each start or resume.
MOST_HALVINGS: Final = 3


@dataclass(frozen=True, slots=True)
class Batch:
    """The distribution of one optimizer step's samples; `global_` = `micro` × `ranks` × `accumulation`.

    Attributes:
        micro: Samples that one rank works on at once.
        ranks: Ranks that train in step (1 in parallel-independent: every rank steps by itself).
        accumulation: Micro-batches that a rank adds up before an optimizer step.
    """

    micro: int
    ranks: int
    accumulation: int
    global_: int

    @classmethod
    def of(cls, micro: int, ranks: int, accumulation: int) -> Batch:
        return cls(micro, ranks, accumulation, micro * ranks * accumulation)

    def halved(self) -> Batch | None:
        """The same samples a rank in micro-batches of half the size, or the next smaller that divides its share."""
        share = self.micro * self.accumulation
        size = next((size for size in range(self.micro // 2, 0, -1) if share % size == 0), None)
        return None if size is None else Batch(size, self.ranks, share // size, self.global_)

    def __str__(self) -> str:
        return f"{self.global_} = {self.micro} × {self.ranks} × {self.accumulation}"


def resolve_batch(config: RunConfig, ranks: int, *, keep_global: bool = False) -> Batch:
    """Work out the batch on `ranks` ranks that train in step.

    Args:
        config: Any of micro-batch, accumulation and global batch may be missing.
        keep_global: The numbers fitted other ranks: accumulation, then the micro-batch give way to the global batch.

    Raises:
        ConfigError: The three contradict each other, or two of them leave no whole number for the third.
    """
    micro, accumulation, wanted = config.batch_size, config.grad_accum_steps, config.global_batch_size
    if not keep_global:
        return _resolved(micro, accumulation, wanted, ranks)
    for kept in (accumulation, None):
        with contextlib.suppress(ConfigError):
            return _resolved(micro, kept, wanted, ranks)
    return _resolved(None, None, wanted, ranks)


def _resolved(micro: int | None, accumulation: int | None, wanted: int | None, ranks: int) -> Batch:
    if wanted is None:
        micro, accumulation = micro or DEFAULT_MICRO_BATCH, accumulation or 1
        return Batch.of(micro, ranks, accumulation)
    if micro is not None and accumulation is not None:
        if micro * ranks * accumulation != wanted:
            raise _contradiction(micro, ranks, accumulation, wanted)
        return Batch(micro, ranks, accumulation, wanted)
    if micro is not None:
        return Batch(micro, ranks, _third(wanted, ranks, micro, "micro-batch"), wanted)
    if accumulation is not None:
        return Batch(_third(wanted, ranks, accumulation, "accumulation"), ranks, accumulation, wanted)
    share = _third(wanted, ranks, 1, "micro-batch")
    micro = next(size for size in range(min(DEFAULT_MICRO_BATCH, share), 0, -1) if share % size == 0)
    return Batch(micro, ranks, share // micro, wanted)


def _third(wanted: int, ranks: int, other: int, name: str) -> int:
    """`wanted` / (`ranks` × `other`), which must be whole."""
    unit = ranks * other
    if wanted % unit == 0:
        return wanted // unit
    below, above = wanted // unit * unit, (wanted // unit + 1) * unit
    near = f"{below} or {above}" if below else str(above)
    factors = f"{_ranks(ranks)} × {name} {other}" if other != 1 or ranks == 1 else _ranks(ranks)
    raise ConfigError(
        "global_batch_size",
        f"A global batch of {wanted} cannot be divided evenly: it is not a multiple of {unit} ({factors}).",
        f"Set the global batch to {near}, or change the {name}.",
    )


def _contradiction(micro: int, ranks: int, accumulation: int, wanted: int) -> ConfigError:
    return ConfigError(
        "global_batch_size",
        f"The batch settings contradict each other: micro-batch {micro} × {_ranks(ranks)} × accumulation "
        f"{accumulation} is {micro * ranks * accumulation}, but the global batch is set to {wanted}.",
        "Leave out one of micro-batch, accumulation and global batch; the third is computed.",
    )


def _ranks(ranks: int) -> str:
    return f"{ranks} device{'' if ranks == 1 else 's'}"
