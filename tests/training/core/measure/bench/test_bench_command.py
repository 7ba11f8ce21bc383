"""`rankdeck bench` with real ranks on two CPU devices: tables, files, pictures, failures, Ctrl+C."""

from __future__ import annotations

import csv
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
from core.measure.bench.folder import ENVIRONMENT, RESULTS
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


def read_csv(folder: Path) -> list[dict[str, str]]:
    with (folder / RESULTS).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rank_processes(pid: int | None = None) -> list[psutil.Process]:
    return children_with("workers.programs.measure_main", pid)


@pytest.mark.windows
def test_weak_scaling_writes_table_environment_and_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "my results ü"
    assert main(["bench", "weak", *TINY, "--mode", "ddp", *QUICK, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "MiniGPT, DDP, on 1 and 2 devices" in printed and "the target of 90 % is" in printed
    first, second = read_csv(out)
    assert (first["devices"], first["mode"], second["devices"], second["mode"]) == ("1", "single", "2", "ddp")
    assert float(second["efficiency"]) > 0 and first["turns"] == second["turns"] == "2"
    environment = json.loads((out / ENVIRONMENT).read_text(encoding="utf-8"))
    assert environment["kind"] == "weak" and environment["counts"] == [1, 2] and environment["torch"]
    assert 0 <= environment["busy_before"] <= 1
    assert "missing" not in printed
    assert (out / "weak-efficiency.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (out / "weak-efficiency.svg").read_text(encoding="utf-8")
    assert sorted(path.name for path in out.iterdir()) == [
        ENVIRONMENT, RESULTS, "weak-efficiency.png", "weak-efficiency.svg",
    ]  # fmt: skip
    assert not rank_processes()
    assert main(["bench", "weak", *TINY, "--out", str(out)]) == 2  # before anything is measured
    assert "Results are not replaced" in capsys.readouterr().err


def test_names_of_people_and_machines_are_not_written(tmp_path: Path) -> None:
    out = tmp_path / "results"
    assert main(["bench", "memory", *SMALL, "--counts", "1", "--seconds", "0.2", "--out", str(out)]) == 0
    import getpass
    import socket

    for name in (ENVIRONMENT, RESULTS):
        text = (out / name).read_text(encoding="utf-8")
        assert str(tmp_path) not in text
        for known in (getpass.getuser(), socket.gethostname()):
            assert known in ("root", "localhost") or known not in text


@pytest.mark.windows
@pytest.mark.parametrize("mode", ["zero", "independent"])
def test_other_modes_are_measured(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--zero-engine", "torch"] if mode == "zero" else []
    assert main(["bench", "weak", *TINY, "--mode", mode, *flags, *QUICK, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["outcome"] for row in found["rows"]] == ["measured", "measured"]
    assert found["rows"][1]["mode"] == mode and found["rows"][1]["samples_per_s"] > 0
    assert found["charts"][0]["target"] == 90


def test_strong_scaling_keeps_the_global_batch(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "strong", *SMALL, *QUICK, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["devices"], row["global_batch"], row["accumulation"]) for row in rows] == [(1, 4, 2), (2, 4, 1)]
    assert rows[1]["speedup"] > 1  # a pass takes 20 ms on each device, whatever the machine does


def test_accumulation_makes_all_micro_batches(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--global-batch-size", "8", "--counts", "1"]
    assert main(["bench", "accumulation", *SMALL, *flags, *QUICK, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["micro_batch"], row["accumulation"]) for row in rows] == [(1, 8), (2, 4), (4, 2), (8, 1)]
    assert rows[0]["step_s"] > 8 * 0.02 and rows[0]["step_ratio"] > 2  # a pass takes 20 ms, however large


@pytest.mark.windows
def test_sums_by_size_and_transport(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "comm", *SMALL, "--turns", "1", "--seconds", "0.2", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    transports = {row["transport"] for row in rows}
    assert "gloo" in transports and any("bf16" in name for name in transports)
    assert {row["size_bytes"] for row in rows} == {4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 644}
    assert {row["size_bytes"] for row in rows if row["is_model"]} == {644}
    assert all(row["time_s"] > 0 and row["sums"] >= 5 for row in rows)


@pytest.mark.windows
def test_memory_has_a_verdict_for_each_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "memory", *SMALL, "--seconds", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["devices"], row["rank"]) for row in found["rows"]] == [(1, 0), (2, 0), (2, 1)]
    for row in found["rows"]:
        assert row["peak_bytes"] > 1 << 26 and row["steps"] > 20 and row["verdict"] in ("grows", "no growth")
    assert all("bytes a step" in sentence for sentence in found["sentences"])


@pytest.mark.windows
@pytest.mark.parametrize("what", ["kill", "memory"])
def test_a_rank_that_fails_is_a_row_and_the_others_are_measured(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if what == "kill" and sys.platform == "win32":
        pytest.skip("os.kill is not SIGKILL there")
    out = tmp_path / "results"
    failing = ["--set", f"what={what}", "--set", "most=1"]
    assert main(["bench", "weak", *SMALL, *failing, *QUICK, "--out", str(out)]) == 1
    words = {"kill": "process killed", "error": "failed", "memory": "out of memory"}
    assert [row["outcome"] for row in read_csv(out)] == ["measured", words[what]]
    assert words[what] in capsys.readouterr().out and not rank_processes()


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


def test_without_qt_the_table_is_complete_and_that_is_said(tmp_path: Path) -> None:
    blocked = tmp_path / "blocked" / "PySide6"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text("raise ImportError('no Qt here')\n", encoding="utf-8")
    out = tmp_path / "results"
    command = [sys.executable, "-m", "core", "bench", "memory", *SMALL, "--counts", "1", "--seconds", "0.5"]
    env = {**os.environ, "PYTHONPATH": str(blocked.parent)}
    made = subprocess.run([*command, "--out", str(out)], cwd=ROOT, env=env, capture_output=True, text=True, timeout=200)
    assert made.returncode == 0, made.stderr
    assert "Pictures are missing: they are drawn by Qt and pyqtgraph" in made.stdout and "no Qt here" in made.stdout
    assert len(read_csv(out)) == 1 and not list(out.glob("*.png"))


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl+C needs a console")
def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    out = tmp_path / "results"
    command = [sys.executable, "-m", "core", "bench", "weak", *SMALL, "--turns", "500", "--seconds", "0.2"]
    with subprocess.Popen(
        [*command, "--out", str(out)], cwd=ROOT, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:
        deadline = time.monotonic() + 200
        while len(rank_processes(process.pid)) < 3 and time.monotonic() < deadline:  # one's turn was, two's begins
            time.sleep(0.05)
        ranks = rank_processes(process.pid)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=100)
    assert process.returncode == 130 and "Stopped early" in printed
    assert read_csv(out)[0]["outcome"] == "measured"
    assert len(ranks) == 3
    assert not any(rank.is_running() and rank.status() != psutil.STATUS_ZOMBIE for rank in ranks)


@pytest.mark.parametrize(
    ("flags", "code", "text"),
    [
        (["weak", *SMALL[:2], "--devices", "cpu:0"], 2, "Not enough devices"),
        (["weak", *SMALL, "--counts", "1,4"], 2, "4 devices are to be measured, and the run has 2"),
        (["strong", *SMALL[:4], "--mode", "independent"], 2, "no common global batch"),
        (["weak", "--recipe", "script", "--devices", "cpux2"], 2, ""),
        (["fast"], 2, "There is no benchmark 'fast'"),
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


@pytest.mark.skipif(os.name == "nt", reason="permissions are access lists there")
def test_a_folder_that_cannot_be_written_is_known_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["bench", "weak", *SMALL, "--out", str(tmp_path / "file" / "results")]) in (2, 3)
    error = capsys.readouterr().err
    assert "could not be made" in error and len(error.splitlines()) == 3 and not rank_processes()
    if Path("/dev/full").exists():
        assert main(["bench", "weak", *SMALL, "--out", "/proc/rankdeck"]) in (1, 2, 3)
        assert len(capsys.readouterr().err.splitlines()) == 3


def test_nothing_is_measured_beside_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = RunStore.create(tmp_path / "runs", RunConfig(), tmp_path / "runs" / "night")
    store.write_state(RunState("night", state="training", host=own()))
    assert main(["bench", "weak", *SMALL, "--runs-dir", str(tmp_path / "runs")]) == 3
    assert "night is training" in capsys.readouterr().err
