"""A trainer without a host, in this process: its steps can be looked at from within, operation by operation."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from core.config import RunConfig
from core.config.batch import Batch
from core.protocol.messages import DataReady, Grant
from workers.measure.run import NoHost
from workers.strategies import RankPlace, SingleStrategy
from workers.training.session import Session
from workers.training.task import StepSamples, Task
from workers.training.trainer import Trainer

SAMPLES: Final = 4096
_IN_MODEL: Final = "in the model"
# What makes a GPU's rank wait for all that it has queued.
_WAITS: Final = ("aten::_local_scalar_dense", "aten::nonzero")
# Operations on many tensors at once, a few kernels on a GPU; on a CPU they are made one by one.
_OF_ALL: Final = ("aten::_foreach", "aten::_fused")


class _Host(NoHost):
    """Grants one chunk of all samples, and wants nothing."""

    stop_asked = commit_asked = finish = False

    def __init__(self) -> None:
        super().__init__()
        self.committed: list[int] = []
        self.orders: deque[Any] = deque()

    def poll(self) -> None: ...

    def wait_for(self, _: type[Grant]) -> Grant:
        return Grant(0, count=SAMPLES)

    def log(self, step: int, /, **scalars: Any) -> None: ...


class _EnoughError(Exception):
    """All steps have been made that were to be looked at."""


@dataclass(frozen=True)
class StepOperations:
    """Operations of one optimizer step that compute or copy, by name; views and other names for them don't count.

    Attributes:
        model: In the forward pass and the loss, and in the backward pass.
        outside: All others.
        waits: In how many of both the processor waits for a GPU.
    """

    model: Mapping[str, int]
    outside: Mapping[str, int]
    waits: int

    @property
    def numbers(self) -> tuple[int, int]:
        """How many in the model, and how many outside."""
        return sum(self.model.values()), sum(self.outside.values())


def step_operations(task: Task, micro_batch: int, *, precision: str = "fp32", accumulation: int = 1) -> StepOperations:
    """Has the real trainer make a few steps of a task on one CPU device, and looks at one of them."""
    config = RunConfig(
        steps=100, precision=precision, eval_every=None, checkpoint_every_s=None, dataset_chunk_size=SAMPLES,
        samples_per_block=SAMPLES, batch_size=micro_batch,
    )  # fmt: skip
    host: Any = _Host()
    strategy = SingleStrategy(RankPlace(0, 1, torch.device("cpu")))
    batch, data = Batch.of(micro_batch, 1, accumulation), DataReady(SAMPLES, 0)
    session = Session(config, Path(), strategy, batch, host, host, data=data)
    profiler = profile(activities=[ProfilerActivity.CPU])

    def before_step(_: StepSamples) -> bool:
        if session.step == 3:
            profiler.start()
        elif session.step == 4:
            profiler.stop()
            raise _EnoughError
        return True

    def loss(model: Any, inputs: Any) -> Any:
        with record_function(_IN_MODEL):
            return task.loss(model, inputs)

    try:
        Trainer(session, replace(task, before_step=before_step, loss=loss)).fit()
    except _EnoughError:
        pass
    model: Counter[str] = Counter()
    outside: Counter[str] = Counter()
    waits = 0
    for event in profiler.events() or ():
        if any(outer.name.startswith(_OF_ALL) for outer in _around(event.cpu_parent)):
            continue
        waits += event.name in _WAITS
        if event.name.startswith("aten::") and _computes(event):
            (model if _is_in_model(event) else outside)[event.name.removeprefix("aten::")] += 1
    return StepOperations(model, outside, waits)


def _computes(event: Any) -> bool:
    """An innermost operation that is no view, and no memory taken."""
    if event.name.startswith(_OF_ALL):
        return True
    inner = [child for child in event.cpu_children if child.name.startswith("aten::") and child.name not in _FREE]
    return not inner and event.name not in _FREE


def _is_in_model(event: Any) -> bool:
    return any(outer.name == _IN_MODEL or outer.name.startswith("autograd::") for outer in _around(event))


def _around(event: Any) -> Iterator[Any]:
    while event is not None:
        yield event
        event = event.cpu_parent


_NAMES: Final = """
    view view_as reshape _unsafe_view _reshape_alias expand expand_as transpose t permute unsqueeze squeeze slice select
    as_strided split chunk narrow unbind alias detach detach_ flatten unflatten empty empty_like empty_strided new_empty
    new_empty_strided resize_ set_ result_type is_nonzero item _local_scalar_dense to _to_copy contiguous resolve_conj
    resolve_neg lift_fresh is_pinned
"""
# Operations that compute nothing themselves.
_FREE: Final = frozenset(f"aten::{name}" for name in _NAMES.split())
