"""Times real optimizer steps of a recipe on one device: data, forward and backward pass, update."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch

from core.config.batch import Batch
from workers.optim.precision import Precision
from workers.strategies import Replica
from workers.training.evaluation import to_device
from workers.training.task import LossAndMetrics, StepSamples, Task

MOST_STEPS: Final = 5
LEAST_STEPS: Final = 2
LIMIT_S: Final = 7.0
"""For all steps: where they take long there are fewer of them, and then with fewer samples."""
GPU_S: Final = 1.0
"""A GPU's energy counter moves about every 0.1 s, so a GPU makes steps for a second."""
_MOST_GPU_STEPS: Final = 200


class StepTimes:
    """Steps of one task on one device.

    Args:
        task: The recipe's.
        precision: Of the passes.
        device: Where the model is moved.
        batch: One rank's: the micro-batch, and how many of them a step has.
    """

    def __init__(self, task: Task, precision: Precision, device: torch.device, batch: Batch) -> None:
        model = task.model.to(device)
        optimizer = task.optimization.optimizer(model, 1e-6)
        self._replica = Replica(model, optimizer, task.optimization, precision)
        self._task, self._precision, self._device, self._batch = task, precision, device, batch

    def measure(self, threads: Sequence[int]) -> list[dict[str, Any]]:
        """Seconds of a step's parts with each number of processor threads (`core.estimate.step_figures`)."""
        own_threads, began, found = torch.get_num_threads(), self._now(), list[dict[str, Any]]()
        self._step(0, self._few)  # makes the optimizer's state
        try:
            for number, count in enumerate(threads):
                left_s = max(0.0, LIMIT_S - (self._now() - began))
                torch.set_num_threads(count or own_threads)
                found.append({"threads": count, **self._timed(left_s / (len(threads) - number))})
        finally:
            torch.set_num_threads(own_threads)
        return found

    @property
    def _few(self) -> int:
        return min(2, self._batch.micro)

    def _timed(self, limit_s: float) -> dict[str, Any]:
        few, micro, began = self._few, self._batch.micro, self._now()
        first = self._step(0, few)
        left_s, longest_s = limit_s - (self._now() - began), max(1e-9, sum(first)) * micro / few
        samples = max(few, min(micro, int(micro * left_s / (LEAST_STEPS * longest_s))))
        steps = min(MOST_STEPS, max(LEAST_STEPS, int(left_s / (longest_s * samples / micro))))
        timed = self._steps(samples, steps)
        pass_s = timed["pass_s"]
        if few < samples < micro:  # passes have a part that does not grow with the samples
            timed["pass_s"] = pass_s + (micro - samples) * max(0.0, pass_s - first[1]) / (samples - few)
        elif samples < micro:
            timed["pass_s"] = pass_s * micro / samples
        return {"micro_batch": micro, **timed}

    def _steps(self, samples: int, steps: int) -> dict[str, Any]:
        energy_j, began = _energy_j(self._device), time.perf_counter()
        times = [self._step(number, samples) for number in range(steps)]
        while self._device.type == "cuda" and time.perf_counter() - began < GPU_S and len(times) < _MOST_GPU_STEPS:
            times.append(self._step(len(times), samples))
        took_s, after_j = time.perf_counter() - began, _energy_j(self._device)
        prepare, passes, updates = zip(*times, strict=True)
        return {
            "steps": len(times),
            "prepare_s": statistics.fmean(prepare) / self._batch.global_,
            "pass_s": statistics.median_low(passes),
            "update_s": statistics.median_low(updates),
            "tokens_per_sample": self._task.tokens_per_sample,
            "power_w": None if energy_j is None or after_j is None else (after_j - energy_j) / took_s,
        }

    def _step(self, number: int, samples: int) -> tuple[float, float, float]:
        """Seconds to make what the recipe needs, of one micro-batch's passes, and of the update."""
        indices = np.arange(samples, dtype=np.int64)
        began = self._now()
        if self._task.before_step is not None:
            numbers = number * self._batch.global_ + np.arange(self._batch.global_, dtype=np.int64)
            with torch.no_grad(), self._precision.forward():
                self._task.before_step(StepSamples(0, numbers, numbers))
            indices = numbers[:samples]
        prepared = self._now()
        with self._replica.micro_batch(last=True):
            inputs = to_device(self._task.batch(indices), self._device)
            with self._precision.forward():
                loss = LossAndMetrics.of(self._task.loss(self._replica.module, inputs)).loss
            self._replica.backward(loss, last=True)
        passed = self._now()
        self._replica.update()
        return prepared - began, passed - prepared, self._now() - passed

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()


def _energy_j(device: torch.device) -> float | None:
    """What the GPU that this process sees has used since its driver was loaded; None without such a counter."""
    if device.type != "cuda":
        return None
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByUUID(os.environ["CUDA_VISIBLE_DEVICES"])
        return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1000
    except (KeyError, pynvml.NVMLError):
        return None
