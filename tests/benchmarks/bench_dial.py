"""Validation loss and bytes sent for each setting of the dial, at equal tokens.

    pytest -m benchmark -s tests/benchmarks/bench_dial.py               real ranks, a short run
    python -m tests.benchmarks.bench_dial --seeds 1 2                   real ranks, 2.46 million tokens a run

Two ranks train MiniGPT as the recipe's form has it (0.84 million parameters, byte-level) on the sources of Python's
standard library. Losses are in nats a byte.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

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


def main(words: Sequence[str]) -> int:
    """The command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--lr", type=float, nargs="+", default=[2e-3])
    parser.add_argument("--steps", type=int, default=1200, help="Of each rank; 2,048 tokens each for both.")
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="rankdeck-dial-") as folder:
        for seed, lr, name in itertools.product(asked.seeds, asked.lr, REAL):
            for result in real(Path(folder) / f"lr{lr:g}", name, seed, lr, asked.steps):
                print(result, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
