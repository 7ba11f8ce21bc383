"""Weak scaling: two ranks in DDP beside two that do not talk, on the same two cores, in turns.

    python -m pytest -n 0 -q -s -m benchmark tests/benchmarks/bench_weak.py        under two minutes

Two cores that share a cache, a memory or, in a virtual machine, one real core are not twice as fast as one. What DDP
itself costs shows beside two ranks that exchange nothing. MiniGPT also runs beside two bare loops by hand, and beside
two that only wait for each other after each step: that costs what the slower core is late, whoever waits.
"""

from __future__ import annotations

import dataclasses
import os
from functools import partial
from pathlib import Path

import pytest

from core.machine.platform import physical_cores
from tests.benchmarks.bench_peers import BATCH, LENGTH, STEPS, hosted, loop, rankdeck, shown
from tests.benchmarks.loops.common import Job
from tests.benchmarks.taking_turns import Contender, rate, take_turns
from tests.helpers.hosted_run import make_run, write_text

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(600),
    pytest.mark.skipif(physical_cores() < 2, reason="needs two cores"),
]
TURNS = int(os.environ.get("RANKDECK_BENCH_TURNS", "7"))
APART, WAITING = "2 by hand", "2 by hand that wait for each other"


def test_minigpt(tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt", 2_000_000)
    job = Job(0, 2, str(text), "", STEPS, BATCH, LENGTH, synchronised=False)
    starts = [
        partial(rankdeck, "ddp", job, tmp_path / "ddp", "ddp"),
        partial(rankdeck, "independent", job, tmp_path / "independent", "independent"),
        partial(loop, "by_hand", job, tmp_path / "apart", 1, APART),
        partial(loop, "by_hand", dataclasses.replace(job, barrier=True), tmp_path / "waiting", 1, WAITING),
    ]
    turns = take_turns(starts, TURNS)
    print()
    for name, beside in (("ddp", "independent"), ("ddp", APART), ("ddp", WAITING), (WAITING, APART)):
        print(f"weak scaling, minigpt, {name} beside {beside}: {shown(turns[name], turns[beside])}")
    assert all(rate(timed) > 0 for timed in turns.values())


def ppo(mode: str, folder: Path) -> Contender:
    """Rounds of 128 steps of 16 environments on each rank, four passes over them."""
    samples = 4 * 4 * 16 * (2 if mode == "ddp" else 1)
    store = make_run(
        folder, "none://", mode, 2, recipe="clstm_ppo", steps=STEPS, batch_size=16, seq_len=32, eval_every=None,
        dataset_chunk_size=samples, samples_per_block=100 * samples, merge_policy="none", options={"passes": 4},
    )  # fmt: skip
    return hosted(store, mode, 2, in_step=mode == "ddp")


def test_recurrent_ppo(tmp_path: Path) -> None:
    turns = take_turns([partial(ppo, mode, tmp_path / mode) for mode in ("ddp", "independent")], TURNS)
    print(f"\nweak scaling, clstm_ppo, ddp beside independent: {shown(turns['ddp'], turns['independent'])}")
    assert all(rate(timed) > 0 for timed in turns.values())
