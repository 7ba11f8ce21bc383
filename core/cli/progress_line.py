"""Progress line: a run's metrics so far, as one line of text."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from core.config.mode import Mode
from core.formatting import count, duration, number, rate
from core.metrics.last_value import last_value
from core.recipes.main_metric import LOSS, MainMetric

_RATE_WINDOW_STEPS: Final = 200
# A script may print anything.
MOST_EPOCHS: Final = 1e9


class RunProgress:
    def __init__(self) -> None:
        self.total_steps: int | None = None
        # Progress towards a goal that ends the run.
        self.goal = ""
        self.mode = ""
        # What its recipe is judged by.
        self.metric: MainMetric = LOSS
        self.epoch = 0
        # 1 for recipes, which count epochs from 0; 0 for scripts, whose number is shown as printed.
        self.first_epoch = 1
        self._last: dict[int, Mapping[str, Any]] = {}
        self._evaluated: dict[str, dict[object, float]] = {}
        self._times: deque[tuple[int, float]] = deque(maxlen=_RATE_WINDOW_STEPS)
        self._ranks = 1

    def take(self, line: Mapping[str, Any]) -> None:
        event = line.get("event")
        if event == "step":
            self._take_step(line)
        elif event == "eval":
            for name, value in line.items():
                if isinstance(value, int | float):
                    self._evaluated.setdefault(name, {})[line.get("rank")] = value
        elif event == "launch":
            self._last.clear()
            self._times.clear()
            self.mode = str(line.get("mode", ""))
            total, ranks = line.get("total_steps"), line.get("world_size")
            self.total_steps = total if isinstance(total, int) else None
            self._ranks = ranks if isinstance(ranks, int) else 1

    @property
    def step(self) -> int:
        steps = [int(line["step"]) for line in self._last.values()]
        return min(steps, default=0) if self.mode == Mode.INDEPENDENT else max(steps, default=0)

    @property
    def value(self) -> float | None:
        return next((mean for name in self.metric.names if (mean := self._mean(name)) is not None), None)

    @property
    def evaluated(self) -> float | None:
        return next(
            (last_value(n, self._evaluated[n].values()) for n in self.metric.eval_names if n in self._evaluated), None
        )

    @property
    def tokens_per_s(self) -> float | None:
        values = self._values("tokens_per_s")
        return sum(values) if values else None

    @property
    def left_s(self) -> float | None:
        if self.total_steps is None or len(self._times) < 2:
            return None
        (first, began), (last, ended) = self._times[0], self._times[-1]
        if last <= first or ended <= began:
            return None
        return max(0, self.total_steps - last) * (ended - began) / (last - first)

    def text(self) -> str:
        """``step 120/300 · loss 2.312 · val 2.401 · 3,921 tok/s · 1 m 20 s left``."""
        parts = [f"step {count(self.step)}" + (f"/{count(self.total_steps)}" if self.total_steps else "")]
        if self.goal:
            parts.append(self.goal)
        if self.epoch:
            parts.append(f"epoch {self.epoch + self.first_epoch}")
        parts.append(f"{self.metric.title} {number(self.value, 4)}")
        if self.evaluated is not None:
            parts.append(f"val {number(self.evaluated, 4)}")
        if self.tokens_per_s is not None:
            parts.append(rate(self.tokens_per_s, "tok/s"))
        if self.left_s is not None:
            parts.append(f"{duration(self.left_s)} left")
        return " · ".join(parts)

    def _take_step(self, line: Mapping[str, Any]) -> None:
        step, rank = line.get("step"), line.get("rank", 0)
        if not isinstance(step, int) or not isinstance(rank, int):
            return
        self._last[rank] = line
        epoch = line.get("epoch")
        if isinstance(epoch, int | float) and 0 <= epoch < MOST_EPOCHS:
            self.epoch = int(epoch)
        if rank == min(self._last) and isinstance(line.get("ts"), int | float):
            self._times.append((step, float(line["ts"])))

    def _values(self, name: str) -> list[float]:
        return [float(line[name]) for line in self._last.values() if isinstance(line.get(name), int | float)]

    def _mean(self, name: str) -> float | None:
        return last_value(name, self._values(name))
