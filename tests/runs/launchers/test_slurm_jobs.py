"""Submitted runs: on a cluster of two nodes, followed, queued again, cancelled and refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from core.cli.entry import main
from core.config.config_file import to_toml
from core.launch.slurm.jobs import look
from core.launch.slurm.submission import batch_file_of, log_of, submissions
from core.run_folder.store import RunStore, list_runs
from tests.helpers.fake_behaviour import BEHAVIOUR_FILE, as_table
from tests.helpers.host_fixture import FINISHED, STOPPED, FakeRun, MakeRun
from tests.helpers.launched import Job, wait
from tests.helpers.net_nodes import NO_NODES
from tests.helpers.slurm import two_nodes, why_not

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "Slurm is here"),
    pytest.mark.skipif(bool(NO_NODES), reason=NO_NODES or "namespaces are here"),
]
Start = Callable[..., Job]


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


def only_run(runs_dir: Path) -> RunStore:
    wait(lambda: any(entry.state is not None for entry in list_runs(runs_dir)), "the run")
    (entry,) = list_runs(runs_dir)
    return RunStore(entry.path)


def behave(run_dir: Path, **fields: object) -> None:
    (run_dir / BEHAVIOUR_FILE).write_text(as_table({"*": dict(fields)}), encoding="utf-8", newline="\n")


def slurm_says(*command: str) -> None:
    subprocess.run(command, check=True, timeout=30)


def test_a_run_on_two_nodes_is_submitted_and_followed(make_run: MakeRun, runs_dir: Path, start: Start) -> None:
    run = make_run()
    words = ["-m", "core", "train", "--config", settings(run, steps=20), "--slurm", "all", "--nodes", "2"]
    job = start([sys.executable, *words, "--nic", "eth0", "--devices", "cpux2", "--time", "10"])
    assert job.end() == 0, job.output + _log(runs_dir)
    store = only_run(runs_dir)
    assert (store.state().state, store.state().world_size) == (FINISHED, 4)
    for words in ("Submitted as job", "is running on n[1-2]", "Finished at step 20"):
        assert words in job.output, job.output
    assert "has completed" in job.output


def test_an_exported_file_for_two_nodes_runs_as_it_is(
    make_run: MakeRun, runs_dir: Path, start: Start, tmp_path: Path
) -> None:
    run = make_run(steps=20)
    run.start()
    assert run.end().state == FINISHED
    file = tmp_path / "start it"
    assert main(["export", str(run.run_dir), "--to", "sbatch", "--nodes", "2", "--out", str(file)]) == 0
    job = start(["sbatch", "--wait", f"--output={tmp_path / 'job.log'}", str(file)])
    assert job.end() == 0, job.output + (tmp_path / "job.log").read_text(encoding="utf-8")
    store = only_run(runs_dir)
    assert (store.state().state, store.state().world_size) == (FINISHED, 4)


def test_a_job_that_is_to_end_saves_a_checkpoint_waits_again_and_continues(
    make_run: MakeRun, runs_dir: Path, start: Start
) -> None:
    """What Slurm sends ahead of a time limit and at a preemption, sent by hand; then left, followed and cancelled."""
    run = make_run()
    words = ["-m", "core", "train", "--config", settings(run), "--slurm", "--devices", "cpux2"]
    left = start([sys.executable, *words])
    wait(lambda: submissions(runs_dir), "the job")
    ((run_dir, made),) = submissions(runs_dir)
    behave(run_dir, steps=100_000, step_s=0.02)
    store = only_run(runs_dir)
    wait(lambda: store.state().step >= 3, "step 3")
    left.interrupt()
    assert left.end() == 0 and f"Follow it again: rankdeck slurm follow {made.name}" in left.output, left.output
    slurm_says("scancel", "--signal=TERM", made.number)
    wait(lambda: _restarts(made.number) == 1, "the job in the queue")
    state = store.state()
    assert state.state == STOPPED and "waits in the queue again" in log_of(run_dir).read_text(encoding="utf-8")
    behave(run_dir, steps=state.step + 20)
    _start_again(made.number)
    again = start([sys.executable, "-m", "core", "slurm", "follow", made.name])
    assert again.end() == 0, again.output + _log(runs_dir)
    assert (store.state().state, store.state().step) == (FINISHED, state.step + 20)
    assert f"Finished at step {state.step + 20}" in again.output


def _start_again(number: str) -> None:
    """Starts a job that waits in the queue again, for which Slurm takes two minutes."""
    wait(lambda: not _steps_of(number), "the end of the first start")
    # Within the second in which it ended a job, slurmd refuses it: "Job credential revoked", exit code 1.
    slurm_says("scontrol", "update", f"JobId={number}", "StartTime=now+3")


def _steps_of(number: str) -> list[str]:
    """Slurm's processes that watch a part of a job."""
    lines = (" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
    return [line for line in lines if line.startswith(f"slurmstepd: [{number}.")]


def _restarts(number: str) -> int:
    job = look(number)
    return job.restarts if job is not None and job.is_waiting else 0


def test_a_job_that_was_cancelled_does_not_come_back(
    make_run: MakeRun, runs_dir: Path, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "--config", settings(make_run()), "--slurm", "all", "--devices", "cpu:0", "--detach"]
    assert main(words) == 0
    ((run_dir, made),) = submissions(runs_dir)
    assert capsys.readouterr().out.strip() == made.name
    behave(run_dir, steps=100_000, step_s=0.02)
    following = start([sys.executable, "-m", "core", "slurm", "follow", made.number])
    store = only_run(runs_dir)
    wait(lambda: store.state().step >= 3, "step 3")
    assert main(["slurm", "cancel", made.name]) == 0
    assert following.end() == 1 and f"Job {made.number} was cancelled." in following.output, following.output
    assert f"rankdeck slurm submit {made.name}" in following.output
    job = look(made.number)
    assert job is not None and (job.state, job.restarts) == ("CANCELLED", 0)
    capsys.readouterr()
    assert main(["slurm", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"run": made.name, "job": made.number, "state": "CANCELLED"}]


def test_a_node_that_fails_is_said_and_the_job_continues_the_run(
    make_run: MakeRun, runs_dir: Path, start: Start
) -> None:
    words = ["-m", "core", "train", "--config", settings(make_run()), "--slurm", "--devices", "cpux2"]
    following = start([sys.executable, *words])
    wait(lambda: submissions(runs_dir), "the job")
    ((run_dir, made),) = submissions(runs_dir)
    behave(run_dir, steps=100_000, step_s=0.02, commit_every=2)
    store = only_run(runs_dir)
    wait(lambda: store.state().step >= 5, "step 5")
    job = look(made.number)
    assert job is not None
    slurm_says("scontrol", "update", f"NodeName={job.nodes}", "State=DOWN", "Reason=test")
    wait(lambda: _restarts(made.number) == 1, "the job in the queue")
    slurm_says(
        "scontrol", "update", f"NodeName={job.nodes}", "State=DRAIN", "Reason=test"
    )  # else it comes back at once
    wait(lambda: "DUE TO NODE FAILURE" in following.output, "the reason, in the job's log")
    behave(run_dir, steps=store.state().step + 20)
    _start_again(made.number)
    assert following.end() == 0, following.output + _log(runs_dir)
    assert store.state().state == FINISHED
    assert "(restart 1)" in following.output
    slurm_says("scontrol", "update", f"NodeName={job.nodes}", "State=RESUME")


def test_with_a_least_number_of_nodes_the_job_continues_without_one(
    make_run: MakeRun, runs_dir: Path, start: Start
) -> None:
    words = ["-m", "core", "train", "--config", settings(make_run()), "--slurm", "--nodes", "1:2", "--nic", "eth0"]
    following = start([sys.executable, *words, "--devices", "cpu:0"])
    wait(lambda: submissions(runs_dir), "the job")
    ((run_dir, made),) = submissions(runs_dir)
    behave(run_dir, steps=100_000, step_s=0.02, commit_every=2)
    store = only_run(runs_dir)
    wait(lambda: store.state().step >= 5, "step 5")
    assert store.state().world_size == 2, following.output
    slurm_says("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=test")
    wait(lambda: store.state().world_size == 1, "the run on what is left")
    behave(run_dir, steps=store.state().step + 50)
    assert following.end() == 0, following.output + _log(runs_dir)
    job = look(made.number)
    assert store.state().state == FINISHED and job is not None and job.restarts == 0


def test_a_run_that_was_stopped_here_is_resumed_as_a_job(
    make_run: MakeRun, runs_dir: Path, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run()
    run.behave(steps=100_000, step_s=0.02)
    run.start().wait_for_step(3).stop()
    steps = run.end().step + 20
    run.behave(steps=steps)
    words = ["-m", "core", "resume", str(run.run_dir), "--slurm", "all", "--devices", "cpux2", "--lr", "0.5"]
    job = start([sys.executable, *words])
    assert job.end() == 0, job.output + _log(runs_dir)
    state = run.store.state()
    assert (state.state, state.step, state.world_size) == (FINISHED, steps, 2)
    assert run.store.config().lr == 0.5
    text = batch_file_of(run.run_dir).read_text(encoding="utf-8")
    assert main(["resume", str(run.run_dir), "--slurm"]) == 2 and "has finished" in capsys.readouterr().err
    longer = ["resume", str(run.run_dir), "--steps", "100000", "--slurm"]
    assert main([*longer, "nowhere", "--devices", "cpu:0"]) == 3
    assert "invalid partition" in capsys.readouterr().err
    assert batch_file_of(run.run_dir).read_text(encoding="utf-8") == text, "the file of before is there"
    assert main([*longer, "--devices", "cpu:0", "--detach"]) == 0
    assert capsys.readouterr().out.strip() == run.run_dir.name
    assert main([*longer, "--devices", "cpu:0"]) == 2
    assert "is submitted already" in capsys.readouterr().err
    assert main(["slurm", "cancel", str(run.run_dir)]) == 0


def test_what_slurm_refuses_leaves_nothing(
    make_run: MakeRun, runs_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "--config", settings(make_run()), "--devices", "cpu:0"]
    assert main([*words, "--slurm", "nowhere"]) == 3
    assert "sbatch says: invalid partition specified: nowhere" in capsys.readouterr().err
    assert main([*words, "--slurm", "--nodes", "0"]) == 2
    assert main([*words, "--slurm", "--gpus-per-node", "2"]) == 2
    assert main(["train", "--config", settings(make_run()), "--slurm"]) == 2
    assert main([*words, "--time", "5"]) == 2
    assert list(runs_dir.iterdir()) == []


def _log(runs_dir: Path) -> str:
    found = submissions(runs_dir)
    return log_of(found[0][0]).read_text(encoding="utf-8") if found else "nothing was submitted"
