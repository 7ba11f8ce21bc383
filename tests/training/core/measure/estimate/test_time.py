"""Time, predicted by real steps and a real link, and recorded when a run begins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.cli.entry import main
from core.measure.estimate.history import history

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
TIME_FIELDS = {
    "step_s", "exchange_s", "sent_bytes", "samples_per_s", "tokens_per_s", "speedup", "hours", "reason",
    "gain",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path / "home"))
    (tmp_path / "text.txt").write_text("the cat sat on the mat. " * 2000, encoding="utf-8")


def test_a_ddp_run_records_the_time_that_was_predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = ["--runs-dir", str(tmp_path / "runs")]
    flags = ["--dataset-file", str(tmp_path / "text.txt"), "--seq-len", "32", "--batch-size", "4", "--steps", "12"]
    flags += ["--set", "n_layer=2", "--set", "n_embd=64", "--set", "sample_tokens=0", *runs]
    flags += ["--devices", "cpux2", "--mode", "ddp"]

    assert main(["estimate", *flags, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    modes = {mode["mode"]: mode["time"] for mode in found["modes"] if "reason" not in mode}
    assert {"single", "ddp", "fsdp", "independent"} <= set(modes)
    for name, time in modes.items():
        assert set(time) == TIME_FIELDS, name
        assert time["step_s"] > 0 and time["speedup"] > 0, name
        assert time["tokens_per_s"] == pytest.approx(32 * time["samples_per_s"])
        assert time["hours"] == pytest.approx(12 * 8 / time["samples_per_s"] / 3600)
    assert modes["ddp"]["exchange_s"] > 0 == modes["independent"]["exchange_s"]
    assert found["advice"].startswith("Use ")

    assert main(["train", *flags]) == 0
    (row,) = history(tmp_path / "runs")
    lines = (tmp_path / "runs" / row["run"] / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    launch = next(line for line in map(json.loads, lines) if line["event"] == "launch")
    assert launch["predicted_bytes"] == row["predicted_bytes"]
    for name, value in (("predicted_step_s", "step_s"), ("predicted_speedup", "speedup")):
        assert launch[name] == pytest.approx(modes["ddp"][value])
    assert launch["one_samples_per_s"] == pytest.approx(modes["single"]["samples_per_s"])
