"""ACT-v1 under the real host: stopped and resumed, and with its weights in shards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.run_folder.store import RunStore
from tests.helpers.hosted_run import curve, host, lines, make_run, write_text

pytest.importorskip("torch", reason="trains for real")

pytestmark = [pytest.mark.windows, pytest.mark.slow, pytest.mark.timeout(240)]

TINY = {
    "h_layers": 1, "l_layers": 1, "n_head": 2, "n_embd": 16, "halt_max_steps": 3, "halt_exploration": 0.3,
    "step_price": 0.02, "sample_tokens": 8, "warmup_steps": 2,
}  # fmt: skip


def make_thinking(folder: Path, mode: str = "ddp", **settings: Any) -> RunStore:
    text = write_text(folder.parent / "text.txt", 20_000)
    values: dict[str, Any] = {"recipe": "actv1", "options": TINY, "steps": 24, "lr": 0.01, **settings}
    return make_run(folder, text, mode, 2, **values)


def test_stopped_and_resumed_it_goes_on_bit_for_bit(tmp_path: Path) -> None:
    """Halting draws numbers at every step: they too go on where they stood."""
    whole, parted = make_thinking(tmp_path / "whole"), make_thinking(tmp_path / "parted")
    assert host(whole) == 0
    assert host(parted, stop_at=6) == 0
    stopped = max(curve(parted))
    assert stopped < 24 and host(parted) == 0
    for name in ("loss", "halt_steps_mean", "q_loss", "objective", "accuracy"):
        assert curve(parted, name) == curve(whole, name)
    steps = curve(whole, "halt_steps_mean")
    assert len(steps) == 24 and all(1 <= value <= 3 for value in steps.values())
    assert len({line["halt_steps_mean"] for line in lines(whole, "step") if line["step"] == 20}) == 2
    last = [lines(store, "eval")[-1] for store in (whole, parted)]
    assert last[0]["val_loss"] == last[1]["val_loss"] < curve(whole)[1] - 0.5
    assert last[0]["val_halt_steps_mean"] == last[1]["val_halt_steps_mean"]
    assert lines(whole, "sample")[-1]["text"] == lines(parted, "sample")[-1]["text"] != ""


def test_sharded_weights_learn_what_ddp_learns(tmp_path: Path) -> None:
    """There every rank computes all segments, since each holds a part of the weights only."""
    ddp, fsdp = (make_thinking(tmp_path / mode, mode, steps=8) for mode in ("ddp", "fsdp"))
    assert host(ddp) == host(fsdp) == 0
    for name in ("loss", "halt_steps_mean"):
        assert curve(fsdp, name) == pytest.approx(curve(ddp, name), abs=1e-4)
    seen = [lines(store, "eval")[-1] for store in (ddp, fsdp)]
    assert seen[1]["val_loss"] == pytest.approx(seen[0]["val_loss"], abs=1e-4)
    assert lines(fsdp, "sample")[-1]["text"] == lines(ddp, "sample")[-1]["text"]
