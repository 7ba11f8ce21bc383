"""Validation loss and bytes sent for each setting of the dial, at equal tokens.

    pytest -m benchmark -s tests/benchmarks/bench_dial.py               real ranks, a short run
    python -m tests.benchmarks.bench_dial real --seeds 1 2              real ranks, 2.46 million tokens a run
    python -m tests.benchmarks.bench_dial simulate --interval 10 50 --outer 1/0 0.5/0.8

Two ranks train MiniGPT as the recipe's form has it (0.84 million parameters, byte-level) on the sources of Python's
standard library. `simulate` trains both ranks' copies in this one process, in turn, with the product's own outer step:
the same arithmetic without the waiting, for trying settings out. Losses are in nats a byte.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.config.sync import AVERAGE, DILOCO, Synchronisation
from core.data.dataset import list_files
from tests.helpers.hosted_run import host, lines, make_run

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]
LENGTH, BATCH, RANKS = 128, 8, 2
SHAPE = {"n_layer": 4, "n_head": 4, "n_embd": 128}
VAL_SAMPLES = 256


@dataclass(frozen=True)
class Result:
    """One trained setting.

    Attributes:
        setting: In words.
        seed, lr: Of the run.
        val_loss: After the last step.
        bytes_per_step: Sent by a rank.
    """

    setting: str
    seed: int
    lr: float
    val_loss: float
    bytes_per_step: float

    def __str__(self) -> str:
        sent = f"{self.bytes_per_step / 2**20:8.4f} MiB a step"
        return f"{self.setting:44} lr {self.lr:g}  seed {self.seed}  val loss {self.val_loss:.4f}  {sent}"


# --- real ranks --------------------------------------------------------------------------------------------------

REAL: dict[str, dict[str, Any]] = {
    "DDP (H = 1)": {"mode": "ddp"},
    "H = 10": {"mode": "independent", "sync_every": 10},
    "H = 50": {"mode": "independent", "sync_every": 50},
    "never": {"mode": "independent", "merge_policy": "average"},
}


def real(folder: Path, name: str, seed: int, lr: float, steps: int) -> Iterator[Result]:
    """Trains one setting through the run host; `never` has three results."""
    settings = dict(REAL[name])
    store = make_run(
        folder / f"run-{seed}-{settings.get('sync_every', settings['mode'])}",
        "stdlib://",
        settings.pop("mode"),
        RANKS,
        steps=steps,
        seed=seed,
        lr=lr,
        seq_len=LENGTH,
        batch_size=BATCH,
        eval_every=steps,
        val_samples=VAL_SAMPLES,
        dataset_chunk_size=500,
        samples_per_block=10_000,
        options={**SHAPE, "sample_tokens": 0, "warmup_steps": 20},
        **settings,
    )
    assert host(store, timeout_s=7200, forked=False) == 0, lines(store, "failed")
    model_bytes = store.model.stat().st_size
    if name == "never":
        losses = lines(store, "merge")[-1]["val_losses"]
        average = losses.pop("average")
        yield Result("never, the best rank", seed, lr, min(losses.values()), 0.0)
        yield Result("never, averaged at the end", seed, lr, average, 0.0)
        return
    val_loss = lines(store, "eval")[-1]["val_loss"]
    done = lines(store, "synchronised")
    sent = done[0]["bytes"] / steps if done else float(model_bytes)
    words = "".join(f", {note.partition('together ')[2]}" for note in lines(store, "launch")[0]["notes"][-1:])
    yield Result(name + words.rstrip("."), seed, lr, val_loss, sent)


def test_a_short_run_of_each(tmp_path: Path) -> None:
    """Prints the table for 60 steps; the losses of so short a run say nothing of the bars."""
    for name in REAL:
        for result in real(tmp_path, name, 1, 2e-3, 60):
            print(result)
            assert math.isfinite(result.val_loss)


# --- both ranks in one process -----------------------------------------------------------------------------------


class Simulation:
    """Two copies of the model, trained in turn on distinct samples.

    Args:
        every: Steps between rounds; 1 is DDP (one copy on both ranks' samples), 0 never.
        rule: The outer step; None with `every` 0 or 1.
    """

    def __init__(self, text: np.ndarray[Any, Any], every: int, rule: Synchronisation | None) -> None:
        self._text = text
        self._every = every
        self._rule = rule
        self._train_tokens = len(text) - max(int(len(text) * 0.05), LENGTH + 1)
        self._samples = (self._train_tokens - 1) // LENGTH

    def run(self, seed: int, lr: float, steps: int) -> tuple[list[float], float]:
        """Validation losses (of the shared weights, or of each rank's and their average) and bytes a step."""
        import torch
        from torch.nn.utils import parameters_to_vector, vector_to_parameters

        from workers.optim.optimizer import Optimization
        from workers.recipes.minigpt.model import MiniGPT, Shape
        from workers.strategies.outer_optimizer import OuterOptimizer

        rule = Optimization(
            options={"betas": (0.9, 0.95)}, weight_decay=0.1, warmup_steps=20, min_lr_ratio=0.1, clip_norm=1.0
        )
        models = []
        for _ in range(1 if self._every == 1 else RANKS):
            torch.manual_seed(seed)
            models.append(MiniGPT(Shape(256, LENGTH, **SHAPE)))
        optimizers = [rule.optimizer(model, lr) for model in models]
        total = torch.zeros(0)
        outers = []
        if self._rule is not None:
            cpu = torch.device("cpu")
            outers = [OuterOptimizer(model, self._rule, lambda t: t.copy_(total), cpu) for model in models]
        for outer in outers:
            outer.start()
        order = np.random.default_rng(seed).permutation(self._samples)
        each = RANKS * BATCH // len(models)
        rounds = 0
        for step in range(1, steps + 1):
            for number, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
                for group in optimizer.param_groups:
                    group["lr"] = rule.lr(step, steps, lr)
                first = (step - 1) * RANKS * BATCH + number * each
                self._loss(model, order[first : first + each], 0).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
                optimizer.step()
                optimizer.zero_grad()
            if outers and (step % self._every == 0 or step == steps):
                with torch.no_grad():
                    total = sum((parameters_to_vector(m.parameters()) for m in models), torch.zeros(1)) / len(models)
                for outer in outers:
                    outer.synchronise(1 / len(models), plain=step == steps)
                rounds += 1
        model_bytes = 4 * sum(p.numel() for p in models[0].parameters())
        if self._every:
            sent = model_bytes * (rounds / steps if outers else 1.0)
            return [self._evaluate(models[0])], sent
        losses = [self._evaluate(model) for model in models]
        with torch.no_grad():
            mean = sum((parameters_to_vector(m.parameters()) for m in models), torch.zeros(1)) / len(models)
            vector_to_parameters(mean, models[0].parameters())
        return [*losses, self._evaluate(models[0])], 0.0

    def _loss(self, model: Any, samples: Any, start: int) -> Any:
        import torch
        from torch.nn import functional as F

        places = start + samples[:, None] * LENGTH + np.arange(LENGTH + 1)
        window = torch.from_numpy(self._text[places].astype(np.int64))
        return F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())

    def _evaluate(self, model: Any) -> float:
        import torch

        held_out = (len(self._text) - self._train_tokens - 1) // LENGTH
        chosen = np.unique(np.linspace(0, held_out - 1, VAL_SAMPLES).astype(np.int64))
        parts = np.array_split(chosen, 8)
        with torch.no_grad():
            return float(sum(len(p) * self._loss(model, p, self._train_tokens).item() for p in parts)) / len(chosen)


def simulated(
    text: np.ndarray[Any, Any], every: int, outer: tuple[float, float], seed: int, lr: float, steps: int
) -> Result:
    """One setting; outer learning rate 1 with momentum 0 is the mean itself."""
    rule = None
    words = {0: "never (best; average behind)", 1: "DDP (H = 1)"}.get(every, f"H = {every}, averaging")
    if every > 1:
        rule = Synchronisation(every, AVERAGE if outer == (1.0, 0.0) else DILOCO, *outer)
        words = f"H = {every}, outer {outer[0]:g}/{outer[1]:g}" if rule.method == DILOCO else words
    losses, sent = Simulation(text, every, rule).run(seed, lr, steps)
    if every == 0:
        words = f"never, best (average: {losses[-1]:.4f})"
    return Result(words, seed, lr, min(losses[:RANKS]), sent)


def library_text() -> np.ndarray[Any, Any]:
    """The standard library's sources as bytes."""
    return np.frombuffer(b"\n\n".join(path.read_bytes() for path in list_files("stdlib://")), np.uint8)


def main(words: Sequence[str]) -> int:
    """The command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("real", "simulate"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--lr", type=float, nargs="+", default=[2e-3])
    parser.add_argument("--steps", type=int, default=1200, help="Of each rank; 2,048 tokens each for both.")
    parser.add_argument("--interval", type=int, nargs="+", default=[1, 10, 50, 0], help="simulate: 0 is never.")
    parser.add_argument(
        "--outer", nargs="+", default=["1/0"], help="simulate: outer learning rate / Nesterov momentum; 1/0 averages."
    )
    parser.add_argument("--csv", type=Path, help="Also write the results here.")
    asked = parser.parse_args(words)
    results: list[Result] = []

    def take(result: Result, began: float) -> None:
        results.append(result)
        print(f"{result}  ({time.monotonic() - began:.0f} s)", flush=True)

    if asked.what == "real":
        with tempfile.TemporaryDirectory(prefix="rankdeck-dial-") as folder:
            for seed, lr, name in itertools.product(asked.seeds, asked.lr, REAL):
                began = time.monotonic()
                for result in real(Path(folder) / f"lr{lr:g}", name, seed, lr, asked.steps):
                    take(result, began)
    else:
        import torch

        torch.set_num_threads(1)
        text = library_text()
        for seed, lr, every in itertools.product(asked.seeds, asked.lr, asked.interval):
            for words_of_outer in asked.outer if every > 1 else ["1/0"]:
                outer_lr, momentum = map(float, words_of_outer.split("/"))
                began = time.monotonic()
                take(simulated(text, every, (outer_lr, momentum), seed, lr, asked.steps), began)
    if asked.csv is not None:
        with asked.csv.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(asdict(results[0])), lineterminator="\n")
            table.writeheader()
            table.writerows(asdict(result) for result in results)
    print(json.dumps([asdict(result) for result in results]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
