"""What ACT-v1 costs beside a plain transformer of the same layers, and what more steps of thought bring.

    pytest -m benchmark -s tests/benchmarks/bench_actv1.py              a step's time and operations
    python -m tests.benchmarks.bench_actv1 --steps 1000 --most 1 2 4    validation losses on Python's sources

Steps are made in turn, a round of each model after the other, and timed by the processor's clock, because a machine
that is used for other things changes under one's hands. Losses are in nats a byte, and only comparable for the same
number of steps.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from core.data.dataset import list_files
from tests.helpers.hosted_run import host, lines, make_run
from tests.training.workers.plain_transformer import PlainTransformer
from workers.recipes.actv1.halting import Rule, judge
from workers.recipes.actv1.model import HierarchicalModel, Shape

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]
ROUNDS, STEPS = 5, 4
BATCH, LENGTH = 8, 128
SHAPE = Shape(256, LENGTH, 128, 4, halt_max_steps=1)


@dataclass(frozen=True)
class Trained:
    """A model with its optimizer.

    Attributes:
        name: In words.
        model: It.
        loss: Of the model over tokens and targets.
        optimizer: Its own.
    """

    name: str
    model: nn.Module
    loss: Callable[[Tensor, Tensor], Tensor]
    optimizer: torch.optim.Optimizer

    def step(self, window: Tensor) -> None:
        """One update."""
        self.loss(window[:, :-1], window[:, 1:]).backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def plain() -> Trained:
    model = PlainTransformer(SHAPE)
    return Trained("plain", model, model.loss, torch.optim.AdamW(model.parameters(), 1e-3, fused=True))


def thinking(most: int) -> Trained:
    """ACT-v1 whose tokens all take `most` steps: what one costs that never halts early."""
    model, rule = HierarchicalModel(replace(SHAPE, halt_max_steps=most)), Rule(most)
    with torch.no_grad():
        model.q_head.bias.copy_(torch.tensor([-20.0, 20.0]))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    return Trained(f"{most} step(s)", model, lambda x, y: judge(model(x, y), rule).loss, optimizer)


def test_one_step_of_thought_beside_a_plain_transformer() -> None:
    torch.set_num_threads(1)  # else the processor's time counts threads that wait for each other
    torch.manual_seed(0)
    models = [plain(), thinking(1), thinking(2), thinking(4)]
    windows = torch.randint(0, 256, (ROUNDS * STEPS, BATCH, LENGTH + 1))
    operations = []
    for trained in models:
        with FlopCounterMode(display=False) as counter:
            trained.step(windows[0])
        operations.append(counter.get_total_flops())
    times: dict[str, list[float]] = {trained.name: [] for trained in models}
    for number in range(ROUNDS):
        for trained in models:
            for window in windows[number * STEPS : (number + 1) * STEPS]:
                began = time.process_time()
                trained.step(window)
                times[trained.name].append(time.process_time() - began)
    medians = {name: median(found) for name, found in times.items()}
    print(f"\nplain transformer of the same layers: {medians['plain'] * 1e3:.1f} ms of processor time a training step")
    for trained, count in zip(models[1:], operations[1:], strict=True):
        ratio = medians[trained.name] / medians["plain"]
        print(f"ACT-v1 with {trained.name}: {ratio:.2f} of its time, {count / operations[0]:.3f} of its operations")
    assert operations[0] <= operations[1] < 1.01 * operations[0]


# --- by hand ----------------------------------------------------------------------------------------------


def unigram_entropy() -> float:
    """Of the bytes of Python's sources, in nats: what a model comes to that knows frequencies only."""
    counts: Counter[int] = Counter()
    for file in list_files("stdlib://"):
        counts.update(file.read_bytes())
    shares = np.array(list(counts.values())) / counts.total()
    return float(-(shares * np.log(shares)).sum())


def learn(most: int, steps: int, seed: int, folder: Path, options: dict[str, object]) -> str:
    """One run of the recipe as it stands; its last figures in words."""
    store = make_run(
        folder, "stdlib://", "single", 1, recipe="actv1", steps=steps, seed=seed, batch_size=BATCH, seq_len=LENGTH,
        eval_every=steps, samples_per_block=10_000, dataset_chunk_size=500, lr=2e-3, val_samples=32 * BATCH,
        options={"halt_max_steps": most, "sample_tokens": 0, **options},
    )  # fmt: skip
    if host(store, timeout_s=7200, forked=False) != 0:
        return f"{most}: failed: {store.state().error}"
    last = lines(store, "eval")[-1]
    return (
        f"halt_max_steps {most}  seed {seed}  val loss {last['val_loss']:.4f}  "
        f"steps taken {last['val_halt_steps_mean']:.2f}  right {100 * last['val_accuracy']:.1f} %"
    )


def main() -> None:
    """Trains every setting and prints what it came to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--most", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=NUMBER", help="The recipe's own fields.")
    asked = parser.parse_args()
    options: dict[str, object] = {
        name: float(value) if "." in value else int(value) for name, value in (pair.split("=") for pair in asked.set)
    }
    print(f"unigram entropy of the text: {unigram_entropy():.4f}")
    with tempfile.TemporaryDirectory() as folder:
        for seed in asked.seeds:
            for most in asked.most:
                print(learn(most, asked.steps, seed, Path(folder) / f"{most}-{seed}", options), flush=True)


if __name__ == "__main__":
    sys.exit(main())
