"""Training for real through the command line, on two CPU ranks: to the end, stopped, resumed, interrupted."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from math import log
from pathlib import Path
from typing import Any

import pytest

from core.cli import main
from core.run_folder.store import find_run
from tests.helpers.command_line import CommandLine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[3]
SMALL = shlex.split("--seq-len 32 --batch-size 8 --eval-every 1000 --set n_layer=1 --set n_head=2 --set n_embd=32")
LONG = "100000"
TO_THE_END = ("--steps", "120", "--lr", "1e-2", "--json")
ALONE = ("--devices", "cpu:0", "--mode", "single")  # where it is about the terminal: half as much to start


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[CommandLine]:
    """A command line beside a text; whatever still trains at the end is ended."""
    shell = CommandLine(tmp_path)
    shell.write_text("a text.txt", lines=4000)
    yield shell
    shell.end_runs()


def _train(*flags: str) -> list[str]:
    return ["train", "--dataset-file", "a text.txt", "--devices", "cpux2", *SMALL, *flags]


def _values(lines: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.splitlines()]


def _unigram_entropy(path: Path) -> float:
    """Nats a byte, if each byte is guessed from how often it occurs alone."""
    counts = Counter(path.read_bytes())
    total = sum(counts.values())
    return -sum(n / total * log(n / total) for n in counts.values())


def test_training_to_the_end(shell: CommandLine) -> None:
    check_to_the_end(shell, shell.run(*_train("--mode", "ddp", *TO_THE_END)))
    assert "finished" in shell.run("runs")


@pytest.mark.second_tier
@pytest.mark.usefixtures("quick_hosts")
def test_independent_training_to_the_end(
    shell: CommandLine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shell.place)
    monkeypatch.setenv("RANKDECK_HOME", str(shell.runs))
    assert main(_train("--mode", "independent", *TO_THE_END)) == 0
    check_to_the_end(shell, capsys.readouterr().out)


def check_to_the_end(shell: CommandLine, out: str) -> None:
    values = _values(out)
    events = [value["event"] for value in values]
    assert {"launch", "step", "eval", "commit", "finished", "state"} <= set(events)
    assert values[-1]["event"] == "state" and values[-1]["state"] == "finished"
    steps = [value for value in values if value["event"] == "step"]
    assert {value["rank"] for value in steps} == {0, 1}
    assert max(value["step"] for value in steps) == 120
    val_loss = next(value["val_loss"] for value in reversed(values) if value["event"] == "eval")
    assert val_loss < 0.8 * _unigram_entropy(shell.place / "a text.txt")
    store = shell.only_run()
    assert store.model.is_file()
    assert store.state().exit_code == 0


@pytest.mark.usefixtures("quick_hosts")
def test_a_finished_run_is_given_more_to_do(
    shell: CommandLine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shell.place)
    monkeypatch.setenv("RANKDECK_HOME", str(shell.runs))
    assert main(_train("--mode", "ddp", "--steps", "10", "--set", "warmup_steps=2")) == 0
    store = shell.only_run()
    assert main(["resume", store.dir.name]) == 2
    capsys.readouterr()
    assert main(["resume", store.dir.name, "--steps", "20"]) == 0
    assert "step 20" in capsys.readouterr().out
    assert (store.state().step, store.state().attempt) == (20, 2)
    lines = [json.loads(line) for line in store.metrics.read_text(encoding="utf-8").splitlines()]
    rates = {line["step"]: line["lr"] for line in lines if line["event"] == "step" and line["rank"] == 0}
    assert rates[11] == rates[20] == rates[10] < rates[9], "it has decayed to its end, and stays there"


@pytest.mark.second_tier
def test_detached_stopped_from_elsewhere_and_resumed(shell: CommandLine) -> None:
    run_id = shell.run(*_train(*ALONE, "--steps", LONG, "--detach")).strip()
    store = find_run(shell.runs, run_id)
    watching = shell.start("attach", run_id)
    assert shell.only_run().dir == store.dir
    shell.run("resume", run_id, code=2)  # it is live
    assert "stopped at step" in shell.run("stop", run_id)
    assert "Stopped at step" in shell.end(watching)
    step = store.state().step
    assert step > 0 and store.state().checkpoint is not None
    out = shell.run("resume", str(store.ledger), "--steps", str(step + 20))
    assert f"step {step:,}" in out and "Finished at step" in out
    assert store.state().step >= step + 20
    assert store.state().attempt == 2


@pytest.mark.second_tier
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl+C needs a console")
def test_ctrl_c_stops_and_commits(shell: CommandLine) -> None:
    process = shell.start(*_train("--mode", "ddp", "--steps", LONG))
    store = shell.only_run()
    process.send_signal(signal.SIGINT)
    assert f"rankdeck resume {store.dir.name}" in shell.end(process)
    state = store.state()
    assert (state.state, state.checkpoint is not None) == ("stopped", True)
    assert store.model.is_file()


@pytest.mark.second_tier
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl+C needs a console")
def test_ctrl_c_twice_ends_now(shell: CommandLine) -> None:
    slow_steps = ("--batch-size", "64", "--grad-accum-steps", "100")
    process = shell.start(*_train(*ALONE, "--steps", LONG, *slow_steps))
    store = shell.only_run()
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert any(b"Ctrl+C again" in line for line in process.stderr)  # after what is said of the flags
    process.send_signal(signal.SIGINT)
    shell.end(process, code=130)
    assert store.state().exit_code == 130


@pytest.mark.second_tier
def test_closing_the_terminal_leaves_the_run_to_its_host(shell: CommandLine) -> None:
    process = shell.start(*_train(*ALONE, "--steps", LONG))
    store = shell.only_run()
    process.kill()
    process.communicate(timeout=60)
    assert store.state().is_live
    shell.run("stop", store.dir.name)
    assert store.state().state == "stopped"
