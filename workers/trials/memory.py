"""Memory of a rank beside its steps: after each one, and the most that it was."""

from __future__ import annotations

import statistics
from typing import Any, Final

import numpy as np
import psutil
import torch

from workers.host_link.peak_memory import peak_rss_bytes
from workers.trials.steps import Steps

MOST_STEPS: Final = 5000


def measure_memory(steps: Steps, seconds: float, device: torch.device) -> dict[str, Any]:
    """Makes steps for about `seconds`; of a GPU the memory of its tensors counts, of a CPU device the process's."""
    process, on_gpu = psutil.Process(), device.type == "cuda"
    count = steps.count(steps.step()[0], seconds, MOST_STEPS)
    held, times = np.zeros(count, dtype=np.int64), np.zeros(count)  # made before, so that they do not grow
    for number in range(count):
        times[number] = steps.step()[1]
        held[number] = torch.cuda.memory_allocated(device) if on_gpu else process.memory_info().rss
    peak = torch.cuda.max_memory_allocated(device) if on_gpu else peak_rss_bytes()
    return {"step_s": statistics.median(times.tolist()), "memory_bytes": held.tolist(), "peak_bytes": peak}
