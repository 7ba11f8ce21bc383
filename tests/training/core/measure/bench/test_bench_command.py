"""`rankdeck bench` with real ranks on two CPU devices: table, JSON, failures, Ctrl+C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from core.cli.entry import main
from core.cli.parser import parse
from core.config import RunConfig
from core.launch.command_line import request_from_arguments
from core.launch.resolved import resolve
from core.machine.devices.cpu import cpu_slots
from core.machine.platform import this_platform
from core.measure.estimate.probe import baselines_name, keep, known_figures
from core.measure.estimate.shape import model_shape
from core.processes.identity import own
from core.run_folder.state import RunState
from core.run_folder.store import RunStore
from tests.helpers.children import children_with
from tests.helpers.forking import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
FAILING = str(Path(__file__).parents[4] / "helpers" / "recipes" / "failing_trial")
TINY = ["--recipe", "minigpt", "--set", "n_layer=1", "--set", "n_embd=32", "--seq-len", "32", "--devices", "cpux2"]
SMALL = ["--recipe", FAILING, "--devices", "cpux2", "--mode", "ddp", "--batch-size", "2"]
QUICK = ["--turns", "2", "--seconds", "0.2"]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path / "home"))


def rank_processes(pid: int | None = None) -> list[psutil.Process]:
    return children_with("workers.programs.measure_main", pid)


@pytest.mark.windows
def test_weak_scaling_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "weak", *TINY, "--mode", "ddp", *QUICK]) == 0
    printed = capsys.readouterr().out
    assert "MiniGPT, DDP, on 1 and 2 devices" in printed and "the target of 90 % is" in printed
    assert "EFFICIENCY" in printed and not rank_processes()


@pytest.mark.windows
@pytest.mark.parametrize("mode", ["zero", "independent"])
def test_other_modes_are_measured(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--zero-engine", "torch"] if mode == "zero" else []
    assert main(["bench", "weak", *TINY, "--mode", mode, *flags, *QUICK, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["outcome"] for row in found["rows"]] == ["measured", "measured"]
    assert found["rows"][1]["mode"] == mode and found["rows"][1]["samples_per_s"] > 0


def test_strong_scaling_keeps_the_global_batch(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "strong", *SMALL, *QUICK, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["devices"], row["global_batch"], row["accumulation"]) for row in rows] == [(1, 4, 2), (2, 4, 1)]
    assert rows[1]["speedup"] > 1  # a pass takes 20 ms on each device, whatever the machine does


@pytest.mark.windows
def test_sums_by_size_and_transport(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "comm", *SMALL, "--turns", "1", "--seconds", "0.2", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    transports = {row["transport"] for row in rows}
    assert "gloo" in transports
    assert {row["size_bytes"] for row in rows} == {4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 644}
    assert {row["size_bytes"] for row in rows if row["is_model"]} == {644}
    assert all(row["time_s"] > 0 and row["sums"] >= 5 for row in rows)


@pytest.mark.windows
@pytest.mark.parametrize("what", ["kill", "memory"])
def test_a_rank_that_fails_is_a_row_and_the_others_are_measured(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    if what == "kill" and sys.platform == "win32":
        pytest.skip("os.kill is not SIGKILL there")
    failing = ["--set", f"what={what}", "--set", "most=1"]
    assert main(["bench", "weak", *SMALL, *failing, *QUICK, "--json"]) == 1
    words = {"kill": "process killed", "memory": "out of memory"}
    found = json.loads(capsys.readouterr().out)
    assert [row["outcome"] for row in found["rows"]] == ["measured", words[what]]
    assert words[what] in found["sentences"][-1] and not rank_processes()


def test_nothing_measured_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    failing = ["--set", "what=error", "--set", "most=1", "--set", "bad_rank=0"]
    assert main(["bench", "weak", *SMALL, *failing, *QUICK]) == 1
    error = capsys.readouterr().err.splitlines()
    assert error[0] == "Nothing was measured" and "this recipe cannot" in error[1] and "--steps 3" in error[2]


def test_what_is_known_not_to_fit_is_not_tried(capsys: pytest.CaptureFixture[str]) -> None:
    request, platform = request_from_arguments(parse(["train", *SMALL])), this_platform()
    run = resolve(request.config, request.recipe, cpu_slots(2), platform)
    size = psutil.virtual_memory().total
    sizes = {"parameters": 1, "trainable": 1, "parameter_bytes": size, "buffer_bytes": 0, "trainable_bytes": size}
    passes = {"optimizer_ratio": 1.0, "step_lines": [[0, 1]], "added_lines": [[0, 1]]}
    keep(model_shape(run), {**sizes, "tensor_bytes": [size], **passes})
    assert known_figures(run) is not None
    keep(baselines_name(platform), {"rss_bytes": {}, "extra_commit_bytes": {}})
    assert main(["bench", "weak", *SMALL, *QUICK]) == 1
    printed = capsys.readouterr()
    assert printed.out.count(": not tried. It needs about") == 2, "nothing was started for it"
    assert printed.err.splitlines()[0] == "Nothing was measured" and "rankdeck estimate" in printed.err
    assert not rank_processes()


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl+C needs a console")
def test_ctrl_c_prints_the_turns_that_were_over() -> None:
    command = [sys.executable, "-m", "core", "bench", "weak", *SMALL, "--turns", "500", "--seconds", "0.2", "--json"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        deadline = time.monotonic() + 200
        while len(rank_processes(process.pid)) < 3 and time.monotonic() < deadline:  # one's turn was, two's begins
            time.sleep(0.05)
        ranks = rank_processes(process.pid)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=100)
    found = json.loads(printed)
    assert process.returncode == 130 and found["is_stopped"]
    assert found["rows"][0]["outcome"] == "measured"
    assert len(ranks) == 3
    assert not any(rank.is_running() and rank.status() != psutil.STATUS_ZOMBIE for rank in ranks)


@pytest.mark.parametrize(
    ("flags", "code", "text"),
    [
        (["weak", *SMALL[:2], "--devices", "cpu:0"], 2, "Not enough devices"),
        (["weak", *SMALL, "--counts", "1,4"], 2, "4 devices are to be measured, and the run has 2"),
        (["strong", *SMALL[:4], "--mode", "independent"], 2, "no common global batch"),
        (["weak", "--recipe", "script", "--devices", "cpux2"], 2, ""),
        (["fast"], 2, "KIND cannot be 'fast'"),
        (["weak", *SMALL, "--turns", "0"], 2, "Give 1 to 1,000"),
        (["weak", *SMALL, "--seconds", "nan"], 2, "--seconds is nan"),
    ],
)
def test_what_is_not_possible_is_refused(
    flags: list[str], code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *flags]) == code
    error = capsys.readouterr().err
    assert text in error and len(error.splitlines()) == 3


def test_nothing_is_measured_beside_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = RunStore.create(tmp_path / "runs", RunConfig(), tmp_path / "runs" / "night")
    store.write_state(RunState("night", state="training", host=own()))
    assert main(["bench", "weak", *SMALL, "--runs-dir", str(tmp_path / "runs")]) == 3
    assert "night is training" in capsys.readouterr().err
