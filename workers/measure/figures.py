"""Figures of a recipe's model: its sizes without its memory, then real micro-batches and whole steps, and their time.

Whole steps at the run's own micro-batch show how much more memory a process takes than its tensors need (the
allocator's gaps). Passes of two and three samples show how live bytes grow with the micro-batch.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil
import torch
import torch.distributed as dist
from torch import Tensor, nn

from core.config import RunConfig
from core.config.batch import Batch
from core.recipes.manifest import Recipe
from workers.host_link.peak_memory import peak_rss_bytes, restart_peak
from workers.measure.live_bytes import LiveBytes, lines_through, peak_of
from workers.measure.process import GpuMemory, ProcessorTimer, mapped_bytes, rss_bytes
from workers.measure.run import MeasuredRun, NoHost
from workers.measure.step_times import StepTimes
from workers.measure.steps import Passes
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.recipe_api.loader import load_function
from workers.recipe_api.refusals import Request
from workers.recipe_api.run import Run
from workers.state_files.safetensors_files import snapshot
from workers.state_files.slices import bare
from workers.strategies import RankPlace, SingleStrategy
from workers.strategies.process_group import make_process_group
from workers.training.evaluation import to_device
from workers.training.session import Session
from workers.training.task import LossAndMetrics, Task
from workers.training.training_mode import evaluating

# Share of the free memory that whole steps may take.
ROOM: Final = 0.5
# Whole steps are made with fewer samples where they would take longer.
LIMIT_S: Final = 10.0
NO_ROOM: Final = "Whole steps would take too much memory beside what is running, so none was made."
# Samples. Not one: operations on a single sample differ from those on more.
_SMALL: Final = (2, 3)
_STEPS: Final = 2
_TEXT_TOKENS: Final = 100
_LR: Final = 1e-6
_META: Final = torch.device("meta")

Say = Callable[[dict[str, Any]], None]


def measure_figures(
    config: RunConfig,
    main: Callable[[Run], None],
    batch: Batch,
    folder: Path,
    device: torch.device,
    say: Say,
    at_first: int,
) -> dict[str, Any]:
    """Measure all figures that depend on the model and not on the mode (`core.measure.estimate.figures.ModelFigures`).

    `say` gets the figures so far, for the case that the rest takes too long; `at_first` is the memory of the process
    before the recipe did anything.
    """
    gpu = GpuMemory(device) if device.type == "cuda" else None
    tasks: list[Task] = []
    try:
        with torch.device("meta"):
            _run(config, main, batch, folder, _META, tasks.append)
    except (RuntimeError, NotImplementedError) as error:  # a recipe that looks at its weights' values
        note = f"The model's sizes can't be found without its memory: {type(error).__name__}: {error}"
        return {"cause": note, "next_step": "Start a short run; its memory is kept in its folder."}
    gc.collect()
    found: dict[str, Any] = {"recipe_bytes": max(0, rss_bytes() - at_first), **model_figures(tasks[0])}
    found |= shard_figures(tasks[0].model)
    tasks.clear()
    say(found)
    free = psutil.virtual_memory().available
    if found["parameter_bytes"] + found["trainable_bytes"] > ROOM * free:
        return found | {"note": "The model is too large to be built here just now, so activations are unknown."}
    before = rss_bytes()

    def measured(task: Task) -> None:
        found["prepared_bytes"] = max(0, peak_rss_bytes() - at_first)  # text was made into tokens
        restart_peak()
        found["mapped_bytes"] = mapped_bytes(task.model)
        passes = _passes(task, config, device)
        found.update(_small_passes(passes, batch))
        say(found)
        if gpu is None:
            found.update(_whole_steps(passes, found, batch, before))
        else:
            found.update(_whole_steps_on_gpu(passes, found, batch, gpu))

    _run(config, main, batch, folder, device, measured)
    return found


def measure_times(
    config: RunConfig,
    main: Callable[[Run], None],
    batch: Batch,
    folder: Path,
    place: RankPlace,
    threads: int,
    alone_threads: int | None,
) -> dict[str, Any]:
    """Measure one rank's times of steps; the others of the place's group make theirs at the same time."""
    found: dict[str, Any] = {}
    torch.set_num_threads(max(1, threads, alone_threads or 0))  # the recipe may want fewer
    group = make_process_group(place) if place.world_size > 1 else None

    def highest(value: float) -> float:
        if group is None:
            return value
        shared = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(shared, op=dist.ReduceOp.MAX, group=group)
        return float(shared)

    def measured(task: Task) -> None:
        times = StepTimes(_passes(task, config, place.device), batch, config.dataset_chunk_size, highest)
        found.update(times.measure(threads, alone_threads, is_first=place.rank == 0))

    _run(config, main, batch, folder, place.device, measured)
    return found


def _passes(task: Task, config: RunConfig, device: torch.device) -> Passes:
    name = config.precision if config.precision != "auto" else "fp32" if device.type == "cpu" else "bf16"
    precision, strategy = Precision(name, device), SingleStrategy(RankPlace(0, 1, device))
    replica = strategy.replicate(task.model.to(device), task.optimization, _LR, precision)
    return Passes(task, replica, precision, device)


def _run(
    config: RunConfig,
    main: Callable[[Run], None],
    batch: Batch,
    folder: Path,
    device: torch.device,
    measure: Callable[[Task], None],
) -> None:
    no_host: Any = NoHost()
    strategy = SingleStrategy(RankPlace(0, 1, torch.device("cpu") if device == _META else device))
    # Without weights the recipe sees the second rank: the first may try what it has built.
    session = Session(config, folder, strategy, batch, no_host, no_host)
    main(MeasuredRun(session, measure, rank=1 if device == _META else 0))


def count_parameters(recipe: Recipe, config: RunConfig) -> dict[str, int]:
    """Count all and the trained parameters (`core.recipes.parameter_formula`); empty where no model can be built."""
    try:
        build = load_function(recipe, "build_model")
        # Shapes without memory, so any size is counted on any machine.
        with torch.device("meta"):
            model = build(Request(config))
    except Exception:  # whatever the recipe's code raises: only its run has to say what is wrong
        return {}
    if model is None:
        return {}
    parameters = list(model.parameters())  # each once, however many layers share it
    trained = sum(one.numel() for one in parameters if one.requires_grad)
    return {"total": sum(one.numel() for one in parameters), "trained": trained}


def model_figures(task: Task) -> dict[str, Any]:
    """Count the sizes of a task's model, which may be on the meta device."""
    parameters = list(task.model.parameters())
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    return {
        "parameters": sum(p.numel() for p in parameters),
        "parameter_bytes": sum(p.nbytes for p in parameters),
        "buffer_bytes": sum(b.nbytes for b in task.model.buffers()),
        "trainable": sum(p.numel() for p in trained),
        "trainable_bytes": sum(p.nbytes for p in trained),
        "tensor_bytes": [p.nbytes for p in trained],
        "optimizer_ratio": optimizer_ratio(task.optimization),
    }


def shard_figures(model: nn.Module) -> dict[str, int]:
    """Count the bytes of the largest part that FSDP gathers by itself, and of all such parts."""
    # Late: what it imports must not count as the recipe's.
    from workers.strategies.fsdp import blocks

    sizes = [sum(p.nbytes for p in block.parameters()) for block in blocks(model)]
    return {"block_bytes": max(sizes, default=0), "blocks_bytes": sum(sizes)}


def optimizer_ratio(optimization: Optimization) -> float:
    """Measure the optimizer's state in bytes for each byte of trained parameters, by a step of a tiny model."""
    tiny = nn.Linear(64, 64, device="cpu")
    optimizer = optimization.optimizer(tiny, 1e-3)
    for parameter in tiny.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    states = [value for state in optimizer.state.values() for value in state.values() if isinstance(value, Tensor)]
    return sum(value.nbytes for value in states if value.dim()) / sum(p.nbytes for p in tiny.parameters())


def _small_passes(passes: Passes, batch: Batch) -> dict[str, Any]:
    """Measure the growth of live bytes with the micro-batch, and the time of a sample where nothing else computes."""
    data_bytes = _prepare(passes, batch)
    _timeline(passes, _SMALL[0])
    timer = ProcessorTimer(torch.get_num_threads())
    alone, added = [], []
    for samples in _SMALL:
        passes.replica.model.zero_grad(set_to_none=True)
        alone.append(_timeline(passes, samples))
        added.append(_timeline(passes, samples))
    sample_s = timer.seconds() / (2 * sum(_SMALL))
    passes.replica.model.zero_grad(set_to_none=True)
    return {
        "step_lines": lines_through(_SMALL, alone),
        "added_lines": lines_through(_SMALL, added),
        "data_bytes": data_bytes,
        "seconds_per_sample": sample_s,
    }


def _whole_steps(passes: Passes, found: Mapping[str, Any], batch: Batch, before: int) -> dict[str, Any]:
    """Measure peaks of tensors and process in whole steps; `before` is the process's memory without the model."""
    samples = _samples_in_time(found, batch)
    if not _has_room(found, samples, psutil.virtual_memory().available):
        return {"note": NO_ROOM}
    before += found["data_bytes"]
    steps = _make_whole_steps(passes, samples, peak_rss_bytes, writes=_can_write(found))
    # With a smaller micro-batch the process had its peak before, in the small passes, beside gradients.
    small = peak_of(found["added_lines"], max(_SMALL)) + found["trainable_bytes"]
    pass_peak = max(steps.passes, small)
    gap = max(0, steps.process_peak - before - steps.held - pass_peak)
    tensor_peak = steps.held + max(pass_peak + gap, steps.copied)
    return {
        "pass_peak_bytes": pass_peak,
        "pass_gap_bytes": gap,
        "copy_gap_bytes": max(0, peak_rss_bytes() - before - tensor_peak),
    }


def _whole_steps_on_gpu(passes: Passes, found: Mapping[str, Any], batch: Batch, gpu: GpuMemory) -> dict[str, Any]:
    """Measure PyTorch's reserve of a GPU in whole steps beyond their tensors: cuBLAS's workspaces, and gaps."""
    samples = _samples_in_time(found, batch)
    if not _has_room(found, samples, gpu.free_bytes):
        return {"note": NO_ROOM, "context_bytes": gpu.context_bytes()}
    gpu.restart_peak()
    steps = _make_whole_steps(passes, samples, gpu.peak_bytes, writes=_can_write(found))
    return {
        "pass_peak_bytes": steps.passes,
        "pass_gap_bytes": max(0, steps.process_peak - steps.held - steps.passes),
        "context_bytes": gpu.context_bytes(),
    }


def _samples_in_time(found: Mapping[str, Any], batch: Batch) -> int:
    return max(1, min(batch.micro, int(LIMIT_S / (_STEPS * found["seconds_per_sample"]))))


def _can_write(found: Mapping[str, Any]) -> bool:
    """Whether a text can be sampled in time, if each token takes a forward pass."""
    return bool(_TEXT_TOKENS * found["seconds_per_sample"] / 3 < LIMIT_S)


def _has_room(found: Mapping[str, Any], samples: int, free: int) -> bool:
    """Whether whole steps of a micro-batch leave enough of the free memory for other programs."""
    held = found["parameter_bytes"] + round((1 + found["optimizer_ratio"]) * found["trainable_bytes"])
    return bool(held + peak_of(found["step_lines"], samples) <= ROOM * free)


@dataclass(frozen=True, slots=True)
class _Steps:
    """Bytes in whole steps: held between them, made by a pass, of the process, and of a checkpoint's copy."""

    held: int
    passes: int
    process_peak: int
    copied: int


def _prepare(passes: Passes, batch: Batch) -> int:
    """Let the recipe make the data of a step; return its bytes."""
    before, numbers = rss_bytes(), np.arange(batch.global_, dtype=np.int64)
    passes.prepare(numbers, numbers)
    return 0 if passes.task.before_step is None else max(0, rss_bytes() - before)


def _timeline(passes: Passes, samples: int) -> list[int]:
    """Make a pass over a number of samples; return the bytes of its tensors after each operation."""
    live = LiveBytes()
    with live:
        passes.make(np.arange(samples, dtype=np.int64))
    return live.timeline


def _evaluate(passes: Passes, samples: int, *, writes: bool) -> None:
    """What a run does between steps: a pass without gradients and, if `writes`, the text of an evaluation."""
    task, model = passes.task, passes.replica.model
    with torch.no_grad(), evaluating(model), passes.precision.forward():
        inputs = to_device(task.batch(np.arange(samples, dtype=np.int64)), passes.device)
        LossAndMetrics.of(task.loss(model, inputs))
        del inputs
        if writes and task.sample is not None:
            task.sample(model)


def _make_whole_steps(passes: Passes, samples: int, most: Callable[[], int], *, writes: bool) -> _Steps:
    """Makes steps of one micro-batch, an evaluation and a checkpoint's copy; `most` tells the peak so far."""
    replica, peak = passes.replica, 0
    for _ in range(_STEPS):
        peak = max(peak, max(_timeline(passes, samples), default=0))
        replica.update()
    _evaluate(passes, samples, writes=writes)
    process_peak = most()
    copies = [snapshot(bare(part.tensors)) for part in replica.parts()]
    copied = sum(tensor.nbytes for copy in copies for tensor in copy.values())
    states = (value for state in replica.optimizer.state.values() for value in state.values())
    held = sum(p.nbytes for p in replica.model.parameters()) + sum(b.nbytes for b in replica.model.buffers())
    held += sum(value.nbytes for value in states if isinstance(value, Tensor))
    return _Steps(held, peak, process_peak, copied)
