"""A line fitted to a line, until it diverges where a test wants it to."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankdeck.recipe import LossAndMetrics, Optimization, PreparedData, Run, StepSamples, Task

SAMPLES = 4096


def main(run: Run) -> None:
    o = run.options
    run.prepare(lambda _: PreparedData(samples=SAMPLES, val_samples=4))
    step = [0]

    def before_step(_: StepSamples) -> bool:
        step[0] += 1
        time.sleep(0.03)  # ten steps are enough to write a checkpoint
        return True

    def is_bad() -> bool:
        wanted = o["bad_from"] <= first + step[0] <= o["bad_until"] and o["bad_rank"] in (-1, run.rank)
        return wanted and run.config.lr > 0.5  # so that it does not diverge again where a lower one is given

    class Breaking(torch.optim.AdamW):
        @torch.no_grad()
        def step(self, closure: Any = None) -> Any:
            done = super().step(closure)
            for parameter in (p for group in self.param_groups for p in group["params"] if is_bad()):
                parameter.fill_(math.nan)
            return done

    def loss(model: nn.Module, x: Tensor) -> LossAndMetrics:
        error = (model(x) - 2.0 * x).square().mean()
        bad = model.training and is_bad()
        if bad and o["bad"] == "gradient":
            error = error * math.nan
        return LossAndMetrics(error, {"loss": error.detach() * (math.inf if bad and o["bad"] == "loss" else 1.0)})

    def batch(indices: np.ndarray) -> Tensor:
        return torch.tensor(indices % 7, dtype=torch.float32)[:, None] / 7

    def sample(model: nn.Module) -> str:
        written = 0
        while written < o["sample_tokens"] and run.keep_sampling():
            model(torch.ones(1, 1))  # ranks that share the weights out wait for each other here
            time.sleep(o["token_s"])
            written += 1
        if o["draws"]:
            torch.multinomial(model(torch.ones(1, 1)).softmax(-1), 1)
        return "x" * written

    model = nn.Linear(1, 4)
    if o["buffers"]:
        model.register_buffer("unused", torch.zeros(1))
    start = run._session.start
    first = 0 if start is None else start.step
    run.fit(
        Task(
            model=model,
            batch=batch,
            val_batch=batch,
            loss=loss,
            optimization=Optimization(
                kind=Breaking if o["bad"] == "weights" else torch.optim.AdamW, clip_norm=1.0, warmup_steps=0
            ),
            before_step=before_step,
            sample=sample if o["sample_tokens"] else None,
            shuffled=False,
        )
    )
