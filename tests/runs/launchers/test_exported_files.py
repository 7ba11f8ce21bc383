"""Exported launch files run as they are: a run is exported, its file started, and the same training happens again."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.cli.entry import main
from core.run_folder.store import RunStore, list_runs
from tests.helpers.host_fixture import FINISHED, FakeRun, MakeRun
from tests.helpers.launched import Job, has
from tests.helpers.slurm import cluster, why_not

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform == "win32", reason="shell scripts; torchrun does not work on Windows"),
]
Start = Callable[..., Job]


@pytest.fixture
def finished(make_run: MakeRun) -> FakeRun:
    run = make_run(steps=20)
    run.start()
    assert run.end().state == FINISHED
    return run


def exported(run: FakeRun, kind: str, folder: Path) -> Path:
    out = folder / f"start it {kind}"
    assert main(["export", str(run.run_dir), "--to", kind, "--out", str(out)]) == 0
    return out


def new_runs(runs_dir: Path) -> list[RunStore]:
    return [RunStore(entry.path) for entry in list_runs(runs_dir)] if runs_dir.exists() else []


def launcher_of(runs_dir: Path) -> tuple[str, str | None, list[str]]:
    (store,) = new_runs(runs_dir)
    text = store.metrics.read_text(encoding="utf-8")
    launched = re.search(r'"launcher":("?)(\w+)\1', text)
    assert launched is not None
    return store.state().state, launched[2], list(store.state().devices)


@pytest.mark.parametrize("kind", ["torchrun", "launch"])
def test_a_script_for_torch_runs_as_it_is(
    finished: FakeRun, start: Start, tmp_path: Path, runs_dir: Path, kind: str
) -> None:
    job = start([str(exported(finished, kind, tmp_path))])
    assert job.end() == 0, job.output
    assert launcher_of(runs_dir) == (FINISHED, "torchrun", ["cpu:0", "cpu:1"])


def test_an_environment_file_and_the_command_that_it_names(
    finished: FakeRun, start: Start, tmp_path: Path, runs_dir: Path
) -> None:
    file = exported(finished, "env", tmp_path)
    (command,) = re.findall(r"^#   (for .*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    job = start(["bash", "-c", f'. "$0"; {command}', str(file)])
    assert job.end() == 0, job.output
    assert launcher_of(runs_dir) == (FINISHED, "env", ["cpu:0", "cpu:1"])


@pytest.fixture
def slurm() -> Iterator[dict[str, str]]:
    with cluster() as variables:
        yield variables


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "Slurm is here")
def test_a_batch_script_is_submitted(
    finished: FakeRun, start: Start, tmp_path: Path, runs_dir: Path, slurm: dict[str, str]
) -> None:
    file = exported(finished, "sbatch", tmp_path)
    job = start(["sbatch", "--wait", f"--output={tmp_path / 'job.log'}", str(file)], slurm)
    assert job.end() == 0, job.output + (tmp_path / "job.log").read_text(encoding="utf-8")
    assert launcher_of(runs_dir) == (FINISHED, "null", ["cpu:0", "cpu:1"])


@pytest.mark.skipif(not has("pwsh"), reason="needs PowerShell (pwsh)")
def test_a_powershell_script_runs_as_it_is(finished: FakeRun, start: Start, tmp_path: Path, runs_dir: Path) -> None:
    file = exported(finished, "powershell", tmp_path)
    job = start(["pwsh", "-NoProfile", "-File", str(file.rename(file.with_suffix(".ps1")))])
    assert job.end() == 0, job.output
    assert launcher_of(runs_dir) == (FINISHED, "null", ["cpu:0", "cpu:1"])


def test_what_cannot_be_exported_is_refused(
    finished: FakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "there.sh"
    out.write_text("mine", encoding="utf-8")
    assert main(["export", str(finished.run_dir), "--to", "torchrun", "--out", str(out)]) == 2
    assert "already exists" in capsys.readouterr().err and out.read_text(encoding="utf-8") == "mine"
    assert main(["export", str(finished.run_dir), "--to", "env", "--checkpoint", "1"]) == 2
    assert main(["export", str(finished.run_dir), "--to", "sbatch"]) == 0
    made = finished.run_dir / "exports" / "sbatch.sbatch"
    assert subprocess.run(["bash", "-n", str(made)], check=False, timeout=30).returncode == 0
