"""Samples a second of two devices of which one does everything twice: shared out equally, and by speed.

    pytest -m benchmark -s tests/benchmarks/bench_unequal.py

Both ways are run in turn, several times, because a machine that is used for other things changes under one's hands.
Time counts from the first step to the last, so that what measuring and changing shares costs is in it.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import pytest

from core.ledger.state_file import read_state_file
from core.run_folder.store import RunStore
from tests.helpers.forking import ROOT
from tests.helpers.hosted_run import host, lines, make_run, write_text

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]
ROUNDS = 3
RECIPE = str(ROOT / "tests" / "helpers" / "recipes" / "unequal")
BATCH, LENGTH, STEPS = 16, 64, 120
TIMES = 2


def run(folder: Path, text: Path, mode: str, **settings: Any) -> tuple[float, float, RunStore]:
    """Samples a second of all ranks together, the validation loss at the end (the best rank's), and the run."""
    values = {"batch_size": BATCH, "seq_len": LENGTH, "eval_every": None, "lr": 3e-4, **settings}
    options = {"slow_rank": 1, "times": TIMES, "n_embd": 96}
    store = make_run(folder, text, mode, 2, recipe=RECIPE, options=options, **values)
    assert host(store, timeout_s=300, forked=False) == 0
    steps = lines(store, "step")
    began = max(line["ts"] for line in steps if line["step"] == 1)
    first = sum(line["samples_per_s"] * line["step_time_s"] for line in steps if line["ts"] <= began)
    samples = sum(line["samples_per_s"] * line["step_time_s"] for line in steps) - first
    losses = [line["val_loss"] for line in lines(store, "eval")]
    return samples / (max(line["ts"] for line in steps) - began), min(losses[-2:]), store


def show(name: str, plain: list[float], by_speed: list[float], losses: tuple[float, float]) -> None:
    """The lines of one comparison."""
    print(f"\n{name}: equal {median(plain):,.1f} samples/s, by speed {median(by_speed):,.1f} samples/s")
    rounds = ", ".join(f"{after / before:.2f}" for before, after in zip(plain, by_speed, strict=True))
    ideal = (1 + 1 / TIMES) / 2 * TIMES
    print(f"{name}: ratio {median(by_speed) / median(plain):.2f} (rounds: {rounds}); at best {ideal:.2f}")
    print(f"{name}: validation loss {losses[0]:.6f} equal, {losses[1]:.6f} by speed")


def test_in_step(tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt", 400_000)
    plain, by_speed = [], []
    settings = {"steps": STEPS, "dataset_chunk_size": 400, "samples_per_block": 4000}
    for number in range(ROUNDS):
        equal = run(tmp_path / f"equal{number}", text, "ddp", balance="equal", **settings)
        measured = run(tmp_path / f"measured{number}", text, "ddp", balance="measured", **settings)
        plain.append(equal[0])
        by_speed.append(measured[0])
        assert measured[1] == pytest.approx(equal[1], rel=1e-3), "the same batches, so the same loss"
    show("DDP", plain, by_speed, (equal[1], measured[1]))
    print(f"DDP: {lines(measured[2], 'balance')[-1]['text']}")


def test_independent(tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt", 250_000)
    plain, by_speed = [], []
    settings = {"epochs": 1, "dataset_chunk_size": 64, "samples_per_block": 640}
    for number in range(ROUNDS):
        own = run(tmp_path / f"own{number}", text, "independent", **settings)
        shared = run(tmp_path / f"shared{number}", text, "independent", work_stealing=True, **settings)
        plain.append(own[0])
        by_speed.append(shared[0])
        chunks = [[(c.block_id, c.chunk_id) for c in read_state_file(one[2].ledger).completed] for one in (own, shared)]
        assert len(chunks[1]) == len(set(chunks[1])) and set(chunks[0]) == set(chunks[1]), "the same chunks, once each"
    show("independent", plain, by_speed, (own[1], shared[1]))
