"""Submitted runs: on a cluster of two nodes, stopped before their time limit, resumed and refused."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.cli.entry import main
from core.config.config_file import to_toml
from core.run_folder.store import RunStore
from tests.helpers.fake_behaviour import BEHAVIOUR_FILE, as_table
from tests.helpers.host_fixture import FINISHED, STOPPED, FakeRun, MakeRun
from tests.helpers.launched import wait
from tests.helpers.net_nodes import NO_NODES
from tests.helpers.slurm import two_nodes, why_not

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "Slurm is here"),
    pytest.mark.skipif(bool(NO_NODES), reason=NO_NODES or "namespaces are here"),
]


@pytest.fixture(scope="module")
def slurm() -> Iterator[dict[str, str]]:
    with two_nodes() as variables:
        yield variables


@pytest.fixture(autouse=True)
def _cluster(slurm: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in slurm.items():
        monkeypatch.setenv(name, value)
    root = Path(__file__).resolve().parents[3]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(root), str(root / "workers" / "sdk")]))


def settings(run: FakeRun, **changes: object) -> str:
    """A config file of the run's settings, for devices that the command names."""
    path = run.run_dir.parent.parent / "asked.toml"
    config = run.config.replace(devices=("auto",), **changes)
    path.write_text(to_toml(config), encoding="utf-8", newline="\n")
    return str(path)


def submitted(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[str, RunStore]:
    """The job's number and its run."""
    assert main(words) == 0
    said = capsys.readouterr()
    found = re.search(r"Submitted as job (\d+)", said.out + said.err)
    folder = re.search(r"Run: (.*)", said.out + said.err)
    assert found is not None and folder is not None
    return found[1], RunStore(Path(folder[1]))


def log_of(store: RunStore) -> str:
    path = store.dir / "slurm" / "job.log"
    return path.read_text(encoding="utf-8") if path.exists() else "no log"


def has_ended(number: str) -> bool:
    asked = ["squeue", "--noheader", f"--job={number}", "--states=all", "--format=%T"]
    done = subprocess.run(asked, check=False, timeout=30, capture_output=True, encoding="utf-8")
    return done.stdout.strip() in ("", "COMPLETED", "FAILED", "CANCELLED")


def test_a_run_on_two_nodes(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "--config", settings(make_run(), steps=20), "--slurm", "all", "--nodes", "2"]
    number, store = submitted([*words, "--devices", "cpux2", "--sbatch=--time=10"], capsys)
    wait(lambda: has_ended(number), "the end of the job")
    assert (store.state().state, store.state().world_size) == (FINISHED, 4), log_of(store)
    assert store.state().nodes == ("n1", "n2") and "Finished at step 20" in log_of(store)


def test_a_job_that_is_to_end_saves_a_checkpoint_and_its_file_resumes_it(
    make_run: MakeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    """What Slurm sends ahead of a time limit, sent by hand."""
    words = ["train", "--config", settings(make_run()), "--slurm", "--devices", "cpux2"]
    number, store = submitted(words, capsys)
    behave(store.dir, steps=100_000, step_s=0.02)
    wait(lambda: store.state_json.exists() and store.state().step >= 3, "step 3")
    subprocess.run(["scancel", "--batch", "--signal=TERM", number], check=True, timeout=30)
    wait(lambda: has_ended(number), "the end of the job")
    state = store.state()
    assert state.state == STOPPED, log_of(store)
    behave(store.dir, steps=state.step + 20)
    again = ["sbatch", "--wait", str(store.dir / "slurm" / "job.sbatch"), "--lr", "0.5"]
    assert subprocess.run(again, check=False, timeout=120).returncode == 0, log_of(store)
    assert (store.state().state, store.state().step) == (FINISHED, state.step + 20)
    assert store.config().lr == 0.5


def behave(run_dir: Path, **fields: object) -> None:
    (run_dir / BEHAVIOUR_FILE).write_text(as_table({"*": dict(fields)}), encoding="utf-8", newline="\n")


def test_what_slurm_refuses_leaves_nothing(
    make_run: MakeRun, runs_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "--config", settings(make_run()), "--devices", "cpu:0"]
    assert main([*words, "--slurm", "nowhere"]) == 3
    assert "sbatch says: invalid partition specified: nowhere" in capsys.readouterr().err
    assert main([*words, "--slurm", "--nodes", "0"]) == 2
    assert main([*words, "--slurm", "--gpus-per-node", "2"]) == 2
    assert main(["train", "--config", settings(make_run()), "--slurm"]) == 2
    assert main([*words, "--nodes", "2"]) == 2
    assert list(runs_dir.iterdir()) == []
