"""One rank's part of a trial: the model in its mode, some real optimizer steps, and how long they took."""

from __future__ import annotations

import gc
import statistics
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from core.config import RunConfig
from core.config.batch import Batch
from core.errors import PeerLostError
from workers.host_link.failures import explain, is_out_of_memory
from workers.measure.run import MeasuredRun, NoHost
from workers.measure.steps import Passes, Steps, take_turns
from workers.measure.sums import time_transports
from workers.optim import seeding
from workers.optim.precision import Precision, agreed
from workers.recipe_api.run import Run
from workers.strategies import RankPlace, Strategy, make_strategy
from workers.training.compiled import SwitchedForward
from workers.training.session import Session
from workers.training.task import Task

# Steps are timed, and nothing is to be learnt in them that would change their speed.
LR: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Trial:
    """A request for a trial.

    Attributes:
        config: Complete with the recipe's defaults.
        mode: The mode, resolved.
        batch: Of this rank's replica group.
        place: This rank's; all ranks of a trial have a rendezvous of their own.
        seconds: How long steps are timed.
        own: Another batch, whose steps are made in turns with those of `batch`.
        what: As `core.measure.ranks` asks for it.
    """

    config: RunConfig
    mode: str
    batch: Batch
    place: RankPlace
    seconds: float
    own: Batch | None = None
    what: str = "steps"


def make_trial(trial: Trial, main: Callable[[Run], None], folder: Path, barrier: Callable[[], None]) -> dict[str, Any]:
    """Make a trial; failures of the recipe, the device or another rank are an answer, too.

    Args:
        trial: The request.
        main: The recipe's.
        folder: This rank's: data is prepared there once for all trials.
        barrier: Waits until all ranks are here, also those that nothing connects.

    Returns:
        The values of `core.measure.trial.RankAnswer`.
    """
    found: dict[str, Any] = {}
    strategy = make_strategy(trial.mode, trial.place, trial.config, trial.batch)
    host: Any = NoHost()
    session = Session(trial.config, folder, strategy, trial.batch, host, host)

    def measured(task: Task) -> None:
        found.update(outcome="measured", **_measured(session, task, trial, barrier))

    try:
        # Alike on every rank, so that all build the same model.
        seeding.seed_everything(trial.config.seed)
        main(MeasuredRun(session, measured, trial.place.rank))
    except Exception as error:
        traceback.print_exc()
        found = _failure(error, trial.place.device)
    finally:
        _close(strategy)
        if trial.config.torch_compile:
            # Kernels belong to this trial's model, and only a few are made of each function.
            torch.compiler.reset()
        gc.collect()
        if trial.place.device.type == "cuda":
            torch.cuda.empty_cache()
    return found


def _measured(session: Session, task: Task, trial: Trial, barrier: Callable[[], None]) -> dict[str, Any]:
    strategy, device = session.strategy, trial.place.device
    if trial.what == "sums":
        size = sum(p.nbytes for p in task.model.parameters() if p.requires_grad)
        return {"sums": time_transports(trial.place, size, trial.seconds)}
    strategy.setup()
    name = agreed(session.config.precision, device, strategy.group_size, strategy.total)
    precision = Precision(name, device)
    # As in `workers.training.setup`: a model that will be sharded stays on the CPU until its blocks are cut.
    model = task.model if strategy.forward_is_collective else task.model.to(device)
    forward = SwitchedForward(model, strategy)
    replica = strategy.replicate(model, task.optimization, LR, precision)
    forward.use(compiled=session.config.torch_compile)

    def steps_of(batch: Batch) -> Steps:
        passes = Passes(task, replica, precision, device)
        made = Steps(passes, strategy, batch, session.data.samples, whole=trial.what != "steps")
        made.warm_up()
        return made

    steps = steps_of(trial.batch)
    if trial.own is None:
        barrier()
        found: dict[str, Any] = {"step_s": steps.measure(trial.seconds)}
    else:
        own = steps_of(trial.own)
        barrier()
        own_s, found_s = take_turns(own, steps, trial.seconds)
        found = {"step_s": statistics.median(found_s), "own_steps_s": own_s, "found_steps_s": found_s}
    found["exchange"] = str(strategy.figures().get("exchange", ""))
    return found | {"round_s": steps.measure_round(barrier)}


def _failure(error: Exception, device: torch.device) -> dict[str, Any]:
    failure = explain(error, str(device))
    if is_out_of_memory(error):
        return {"outcome": "out_of_memory", "cause": failure.cause}
    secondary = failure.peer_lost or isinstance(error, PeerLostError)
    return {"outcome": "failed", "cause": failure.cause, "secondary": secondary}


def _close(strategy: Strategy) -> None:
    """Leave the other ranks, so that those that still wait for this one notice it."""
    try:
        strategy.close()
    except Exception:
        traceback.print_exc()
