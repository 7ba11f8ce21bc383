"""Seconds of a step with what each rank waits for others being timed, over the same step without, in turns.

    pytest -m benchmark -s tests/benchmarks/bench_waits.py

Timing adds two readings of a clock to each of FSDP's collectives, and to each micro-batch where its samples are made.
The second table is the host's part: a step line taken and judged, beside the line's parsing.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import pytest
import torch

from core.host.watches.straggler import find_straggler
from core.host.watches.straggler_watch import StragglerWatch
from tests.helpers.rank_processes import run_ranks
from tests.helpers.resolved_run import made_ranks
from tests.training.rank_program import CPU, BareRank
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.recipes.minigpt.model import MiniGPT, Shape
from workers.strategies import fsdp
from workers.strategies.waits import ShardWait

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]
TURNS: Final = 40
STEPS_A_TURN: Final = 5
LENGTH, BATCH = 64, 4
LINES: Final = 20_000


def turns(rank: BareRank, way: str) -> dict[str, Any]:
    """Seconds of each turn of steps, timed and untimed, one after the other."""
    strategy = rank.set_up(way)
    rule = Optimization(weight_decay=0.1, clip_norm=1.0)

    def made() -> Any:
        torch.manual_seed(1)
        return strategy.replicate(MiniGPT(Shape(256, LENGTH, 4, 4, 128)), rule, 1e-3, Precision("fp32", CPU))

    timed = made()
    with patch.object(fsdp, "ShardWait", lambda _modules: ShardWait(())):
        untimed = made()
    tokens = torch.randint(0, 256, (BATCH, LENGTH))

    def turn(replica: Any) -> float:
        strategy.total([0.0])
        began = time.perf_counter()
        for _ in range(STEPS_A_TURN):
            with replica.micro_batch(last=True):
                replica.backward(replica.module(tokens).float().square().mean(), last=True)
            replica.update()
            replica.sync_wait_s()
        return time.perf_counter() - began

    for replica in (timed, untimed):
        turn(replica)
    taken = [(turn(timed), turn(untimed)) if n % 2 else (turn(untimed), turn(timed))[::-1] for n in range(TURNS)]
    measured = [replica.sync_wait_s() is not None for replica in (timed, untimed)]
    strategy.close()
    return {"taken": taken, "measured": measured}


@pytest.mark.parametrize("way", ["zero2", "fsdp"])
def test_a_step(way: str, tmp_path: Path) -> None:
    ranks = run_ranks(turns, 2, tmp_path, way)
    assert all(rank["measured"] == [True, False] for rank in ranks)
    taken = ranks[0]["taken"]
    ratios = sorted(timed_s / untimed_s for timed_s, untimed_s in taken)
    step_ms = 1e3 * median(untimed_s for _, untimed_s in taken) / STEPS_A_TURN
    quarter = len(ratios) // 4
    print(f"\n{way}: {median(ratios):.3f} (quartiles {ratios[quarter]:.3f}, {ratios[-quarter]:.3f}), {step_ms:.1f} ms")


def test_the_host() -> None:
    ranks = made_ranks("ddp", 2)
    services: Any = SimpleNamespace(stream=SimpleNamespace(emit=None))
    watch = StragglerWatch(services, ranks)
    values = {"step_time_s": 0.05, "sync_wait_s": 0.01, "data_wait_s": 1e-3, "samples_per_s": 80.0, "loss": 1.0}
    lines = [json.dumps({"event": "step", "step": n, "rank": 0, "ts": 1.0, **values}) for n in range(LINES)]
    began = time.perf_counter()
    parsed = [json.loads(line) for line in lines]
    parsing_s = time.perf_counter() - began
    began = time.perf_counter()
    for line in parsed:
        for rank in (0, 1):
            watch.take(ranks[rank], [line])
    taking_s = (time.perf_counter() - began) / 2
    began = time.perf_counter()
    find_straggler(tuple(watch._steps))
    judging_s = time.perf_counter() - began
    assert len(watch._steps) == 512
    print(f"\ntaking a line: {1e6 * taking_s / LINES:.2f} µs, {taking_s / parsing_s:.2f} of parsing it")
    print(f"judging 512 steps, every 4 s: {1e3 * judging_s:.2f} ms")
