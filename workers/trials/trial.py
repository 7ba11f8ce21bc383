"""One rank's part of a trial: the model in its mode, some real optimizer steps, and how long they took."""

from __future__ import annotations

import gc
import statistics
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch

from core.config import RunConfig
from core.config.batch import Batch
from core.errors import PeerLostError
from workers.estimate.measured_run import MeasuredRun, NoHost
from workers.host_link.failures import explain, is_out_of_memory
from workers.optim import seeding
from workers.optim.precision import Precision, agreed
from workers.recipe_api.run import Run
from workers.strategies import RankPlace, Strategy, make_strategy
from workers.training.compiled import SwitchedForward
from workers.training.session import Session
from workers.training.task import Task
from workers.trials.memory import measure_memory
from workers.trials.steps import Steps, take_turns
from workers.trials.sums import time_sums

LR: Final = 1e-6
"""Steps are timed, and nothing is to be learnt in them that would change their speed."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What is tried.

    Attributes:
        config: Complete with the recipe's defaults.
        mode: The mode, resolved.
        batch: Of this rank's replica group.
        place: This rank's; all ranks of a trial have a rendezvous of their own.
        seconds: How long steps are timed.
        own: Another batch, whose steps are made in turns with those of `batch`.
        own_compiles: Whether those are made by a compiled model.
        what: As `core.trials.ranks` asks for it.
    """

    config: RunConfig
    mode: str
    batch: Batch
    place: RankPlace
    seconds: float
    own: Batch | None = None
    own_compiles: bool = False
    what: str = "steps"


class _TrialRun(MeasuredRun):
    """A recipe's run whose ranks each prepare their data by themselves: there is no host to tell the others."""

    _prepares = False

    @property
    def rank(self) -> int:
        """This rank; while it prepares, the first one."""
        return 0 if self._prepares else super().rank

    def prepare(self, *args: Any, **kwargs: Any) -> Any:
        """As `Run.prepare`, on this rank."""
        self._prepares = True
        try:
            return super().prepare(*args, **kwargs)
        finally:
            self._prepares = False


def make_trial(trial: Trial, main: Callable[[Run], None], folder: Path, barrier: Callable[[], None]) -> dict[str, Any]:
    """Makes a trial; never raises for what the recipe, the device or another rank does.

    Args:
        trial: What is tried.
        main: The recipe's.
        folder: This rank's: data is prepared there once for all trials.
        barrier: Waits until all ranks are here, also those that nothing connects.

    Returns:
        `outcome` ("measured", "out_of_memory", "failed") and, where it was measured, `step_s`, `exchange`, `round_s`
        and in a comparison `own_steps_s` and `found_steps_s`, or `memory_bytes` and `peak_bytes`, or only `sums`; else
        the `cause`, and `secondary` where another rank is to blame.
    """
    found: dict[str, Any] = {}
    strategy = make_strategy(trial.mode, trial.place, trial.config, trial.batch)

    host: Any = NoHost()
    session = Session(trial.config, folder, strategy, trial.batch, host, host)

    def measured(task: Task) -> None:
        found.update(_measured(session, task, trial, barrier))

    try:
        seeding.seed_everything(trial.config.seed)  # alike on every rank, so that all build the same model
        main(_TrialRun(session, measured))
    except Exception as error:
        traceback.print_exc()
        found = _failure(error, trial.place.device)
    finally:
        _close(strategy)
        if trial.config.torch_compile:
            torch.compiler.reset()  # kernels belong to this trial's model, and only a few are made of each function
        gc.collect()
        if trial.place.device.type == "cuda":
            torch.cuda.empty_cache()
    return found


def _measured(session: Session, task: Task, trial: Trial, barrier: Callable[[], None]) -> dict[str, Any]:
    strategy = session.strategy
    if trial.what == "sums":
        size = sum(p.numel() * p.element_size() for p in task.model.parameters() if p.requires_grad)
        return {"outcome": "measured", "sums": time_sums(trial.place, size, trial.seconds)}
    strategy.setup()
    device = strategy.place.device
    name = agreed(session.config.precision, device, strategy.group_size, strategy.total)
    precision = Precision(name, device)
    # As in `workers.training.setup`: a model that will be sharded stays on the CPU until its blocks are cut.
    model = task.model if strategy.forward_is_collective else task.model.to(device)
    forward = SwitchedForward(model, strategy)
    replica = strategy.replicate(model, task.optimization, LR, precision)
    use = partial(forward.use, compiled=session.config.torch_compile)
    samples = session.data.samples
    steps = Steps(task, replica, precision, strategy, trial.batch, samples, use, whole=trial.what != "steps")
    steps.warm_up()
    turns: dict[str, Any] = {}
    if trial.what == "memory":
        barrier()
        turns = measure_memory(steps, trial.seconds, device)
        step_s = turns.pop("step_s")
    elif trial.own is None:
        barrier()
        step_s = steps.measure(trial.seconds)
    else:
        use = partial(forward.use, compiled=trial.own_compiles)
        own = Steps(task, replica, precision, strategy, trial.own, samples, use)
        own.warm_up()
        barrier()
        own_s, found_s = take_turns(own, steps, trial.seconds)
        step_s, turns = statistics.median(found_s), {"own_steps_s": own_s, "found_steps_s": found_s}
    return {
        "outcome": "measured",
        "step_s": step_s,
        "exchange": str(strategy.figures().get("exchange", "")),
        "round_s": steps.measure_round(barrier),
        **turns,
    }


def _failure(error: Exception, device: torch.device) -> dict[str, Any]:
    failure = explain(error, str(device))
    if is_out_of_memory(error):
        return {"outcome": "out_of_memory", "cause": failure.cause}
    secondary = failure.peer_lost or isinstance(error, PeerLostError)
    return {"outcome": "failed", "cause": failure.cause, "secondary": secondary}


def _close(strategy: Strategy) -> None:
    """Leaves the other ranks, so that those who still wait for this one notice it."""
    try:
        strategy.close()
    except Exception:
        traceback.print_exc()
