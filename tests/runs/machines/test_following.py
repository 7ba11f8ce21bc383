"""Runs on another machine, followed from here: scripts, which need no PyTorch."""

from __future__ import annotations

import io
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from core.config.run_config import RunConfig
from core.machines.fetch import Fetching
from core.machines.machine import UnreachableError
from core.machines.machine_list import find_machine
from core.machines.send import Sender
from core.machines.session import Session, serving
from core.machines.tree import MAX_CODE_FILES, tree_of
from core.processes.lock import lock_holder
from core.recipes.outside_code import FILE_NAME
from core.run_folder.remote_run import RemoteRun, write_remote
from core.run_folder.store import RunStore, find_run
from tests.helpers.made_runs import TEXT, make_run
from tests.helpers.ssh_server import SshServer
from tests.runs.machines.conftest import Command

pytestmark = [pytest.mark.spawned]
T = TypeVar("T")

COUNTS = """
import os, sys, time
from helper import loss_of
for step in range(1, int(sys.argv[1]) + 1):
    print(f"step {step} loss {loss_of(step)}", flush=True)
    time.sleep(float(sys.argv[2]))
    if os.path.exists(sys.argv[3]):
        break
"""


def make_project(folder: Path, loss: str = "1 / step") -> Path:
    """A program that imports another file of its folder."""
    folder.mkdir(exist_ok=True)
    (folder / "count.py").write_text(COUNTS, encoding="utf-8")
    (folder / "helper.py").write_text(f"def loss_of(step):\n    return {loss}\n", encoding="utf-8")
    return folder / "count.py"


def wait_for(what: Callable[[], object], limit_s: float = 40.0) -> None:
    deadline = time.monotonic() + limit_s
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def steps_of(path: Path) -> list[int]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    return [line["step"] for line in lines if line["event"] == "step"]


def there(machine: SshServer, store: RunStore) -> RunStore:
    return RunStore(machine.runs / store.dir.name)


@pytest.mark.parametrize("ahead_s", [-86_400, 86_400])
def test_a_clock_that_is_a_day_off_there_changes_nothing(
    machine: SshServer,
    command: Command,
    runs_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ahead_s: int,
) -> None:
    machine.set_clock(ahead_s)
    script = make_project(tmp_path / "Projekt ö")
    monkeypatch.chdir(script.parent)
    name = command("run", "--machine", "box", "--detach", "count.py", "9000", "0.1", "-").split()[-1]
    copy = find_run(runs_dir, name)
    wait_for(lambda: len(steps_of(copy.metrics)) > 3)
    wait_for(lambda: copy.state().state == "training")
    assert copy.state().trouble is None
    began = float(json.loads(copy.metrics.read_text(encoding="utf-8").splitlines()[0])["ts"])
    assert abs(began - time.time() - ahead_s) < 3_600, "its lines have the clock there"
    listed = command("runs")
    assert "training" in listed and "MACHINE" in listed and " box " in listed
    assert json.loads(command("runs", "--json"))[0]["machine"] == "box"
    command("stop", name)
    wait_for(lambda: copy.state().state == "stopped" and not copy.is_locked())
    assert copy.metrics.read_bytes() == there(machine, copy).metrics.read_bytes()


def test_a_run_is_followed_through_cuts(
    machine: SshServer, command: Command, runs_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = make_project(tmp_path / "Projekt ö")
    monkeypatch.chdir(script.parent)
    end = tmp_path / "genug"
    name = command("run", "--machine", "box", "--detach", "count.py", "9000", "0.1", str(end)).split()[-1]
    copy = find_run(runs_dir, name)
    origin = there(machine, copy)
    wait_for(lambda: len(steps_of(copy.metrics)) > 3)
    wait_for(lambda: copy.state().state == "training")
    assert copy.state().trouble is None

    machine.cut()
    before = len(steps_of(copy.metrics))
    wait_for(lambda: len(steps_of(copy.metrics)) > before)

    machine.stop()  # for longer: it is said, and the run does not notice
    wait_for(lambda: copy.state().trouble is not None)
    trouble = copy.state().trouble or {}
    assert trouble["title"] == "No connection to box" and "continues there" in trouble["next_step"]
    before = len(steps_of(origin.metrics))
    wait_for(lambda: len(steps_of(origin.metrics)) > before)
    assert "No connection to box" in command("stop", name, code=1)
    machine.start()
    before = len(steps_of(copy.metrics))
    wait_for(lambda: len(steps_of(copy.metrics)) > before)
    wait_for(lambda: copy.state().trouble is None)

    follower = lock_holder(copy.lock_file)
    assert follower is not None
    psutil.Process(follower.pid).kill()  # this computer was switched off
    wait_for(lambda: copy.state().state == "interrupted")
    assert "rankdeck attach" in (copy.state().error or {})["next_step"]
    end.touch()
    printed = command("attach", name)
    assert "Finished" in printed
    assert copy.metrics.read_bytes() == origin.metrics.read_bytes()
    assert steps_of(copy.metrics) == list(range(1, len(steps_of(copy.metrics)) + 1))
    assert (copy.logs / "rank0.log").read_bytes() == (origin.logs / "rank0.log").read_bytes()
    wait_for(lambda: not copy.is_locked())
    assert not copy.host_json.exists()


def test_code_is_sent_by_its_hash_and_a_run_is_stopped_from_here(
    machine: SshServer, command: Command, runs_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = make_project(tmp_path / "Projekt ö")
    monkeypatch.chdir(script.parent)
    trees, blobs = machine.data / "rankdeck" / "machine" / "trees", machine.data / "rankdeck" / "machine" / "files"

    first = command("run", "--machine", "box", "--detach", "count.py", "9000", "0.1", "-").split()[-1]
    sent = {path.name for path in blobs.iterdir()}
    copy = find_run(runs_dir, first)
    assert copy.config().options["script"] == str(script), "the copy names what is here"
    wait_for(lambda: copy.read_host_json() is not None and copy.state().step > 1)
    assert "is stopped" in command("stop", first)
    assert there(machine, copy).state().state == "stopped" == copy.state().state
    wait_for(lambda: not copy.is_locked())

    make_project(script.parent, "2 / step")
    second = command("run", "--machine", "box", "--detach", "count.py", "3", "0", "-").split()[-1]
    assert len({path.name for path in blobs.iterdir()} - sent) == 1, "only what changed is sent"
    assert len(list(trees.iterdir())) == 3  # Rankdeck's own code, and both versions of the project
    command("attach", second)
    assert "2.0" in find_run(runs_dir, second).metrics.read_text(encoding="utf-8").split('"loss"')[1][:8]

    assert "is on this computer" not in command("fetch", second)
    wait_for(lambda: not find_run(runs_dir, second).is_locked())
    resumed = command("resume", second)  # here, what ran there
    assert "count.py" in resumed or "script" in resumed
    assert len(steps_of(find_run(runs_dir, second).metrics)) == 6


class Typed(io.StringIO):
    """What a person types in a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_run_not_started_here_is_asked_about_not_refused(
    machine: SshServer,
    command: Command,
    runs_dir: Path,
    tmp_path: Path,
    own_data: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(make_project(tmp_path / "Projekt ö").parent)
    run_id = command("run", "--machine", "box", "--detach", "count.py", "3", "0", "-").split()[-1]
    command("attach", run_id)
    copy = find_run(runs_dir, run_id)
    wait_for(lambda: not copy.is_locked())
    here = own_data / FILE_NAME
    resume = ("resume", run_id, "--machine", "box", "--detach")

    here.unlink()  # as if another person had started it
    assert "It was never started on this machine." in command(*resume, code=2)
    typed = Typed("n\n")
    monkeypatch.setattr("sys.stdin", typed)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    printed = command(*resume, code=2)
    assert "Run it? [y/N]" in printed and "This run was not started here" in printed

    (machine.data / "rankdeck" / FILE_NAME).unlink()  # nor is it known there: one answer is enough
    monkeypatch.setattr("sys.stdin", Typed("y\n"))
    assert "Run it? [y/N]" in command(*resume)
    command("attach", run_id)
    assert copy.state().attempt == 2 and steps_of(copy.metrics) == [1, 2, 3] * 2
    wait_for(lambda: not copy.is_locked())


def test_what_cannot_be_sent_is_refused(
    machine: SshServer, command: Command, runs_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = make_project(tmp_path / "Projekt ö")
    monkeypatch.chdir(script.parent)
    (script.parent / "outputs").mkdir()
    for number in range(MAX_CODE_FILES):
        (script.parent / "outputs" / str(number)).touch()
    assert "The folder of the code is too large" in command(
        "run", "--machine", "box", "count.py", "3", "0", "-", code=2
    )
    assert list(runs_dir.iterdir()) == [] and not machine.runs.exists()


def test_data_is_uploaded_once_and_continued(machine: SshServer, tmp_path: Path) -> None:
    path = tmp_path / "korpus ü.txt"
    path.write_bytes(os.urandom(3 << 20))
    tree = tree_of("data", path.parent, [path])
    (file,) = tree.files
    with serving(find_machine("box")) as session:
        assert session.missing(tree) == {file.sha256: 0}
        half = iter(list(file.read())[:5])  # then the connection is cut
        session._send({"op": "put", "sha256": file.sha256, "size": file.size, "offset": 0, "bytes": file.size})
        for block in half:
            session._write(block)
    with serving(find_machine("box")) as session:
        missing = session.missing(tree)
        assert 0 < missing[file.sha256] < file.size
        sent: list[int] = []
        there = Path(session.send_tree(tree, sent.append))
        assert sum(sent) == file.size - missing[file.sha256]
        assert (there / path.name).read_bytes() == path.read_bytes()
        assert session.missing(tree) == {}
    assert machine.data.is_dir()


def test_data_there_is_named_and_not_sent(machine: SshServer, command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "Daten dort ö"
    folder.mkdir()
    (folder / "a.txt").write_text("there " * 100, encoding="utf-8")
    with serving(find_machine("box")) as session:
        files = machine.data / "rankdeck" / "machine" / "files"
        before = set(files.iterdir())
        sender = Sender(session, lambda _: None)
        for text, named in ((f"there://{folder}", str(folder)), ("hf://owner/name:en", "hf://owner/name:en")):
            config = sender.send(RunConfig(recipe="minigpt", dataset_file=text))
            assert config.dataset_file == named
        assert set(files.iterdir()) == before
    refused = command("train", "--machine", "box", "--dataset-file", "hf://owner/name", code=None)
    assert "box: " in refused and ("datasets" in refused or "download" in refused), "it is looked for there"
    assert not machine.runs.exists()


def test_a_start_whose_answer_is_lost(
    machine: SshServer, command: Command, runs_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks after the run was started there; then before it is."""
    script = make_project(tmp_path / "Projekt ö")
    monkeypatch.chdir(script.parent)
    ask, starts = Session.ask, True

    def cut(session: Session, request: dict[str, object], form: type[T], limit_s: float = 60.0) -> T:
        if request["op"] == "start":
            if starts:
                session._send(request)
                wait_for((machine.runs / str(request["run_id"]) / "state.json").exists)
            session.end()
            raise session._broken()  # an answer that had already arrived is not read
        return ask(session, request, form, limit_s)

    monkeypatch.setattr(Session, "ask", cut)
    printed = command("run", "--machine", "box", "--detach", "count.py", "5", "0", "-")
    assert "broke before it answered" in printed
    (copy,) = [RunStore(path.parent) for path in runs_dir.glob("*/remote.json")]
    wait_for(lambda: copy.state().state == "finished" and not copy.is_locked())
    assert [path.parent.name for path in machine.runs.glob("*/state.json")] == [copy.dir.name], "it was started once"
    assert copy.metrics.read_bytes() == there(machine, copy).metrics.read_bytes()
    assert copy.config().options["script"] == str(script)

    starts = False
    command("run", "--machine", "box", "--detach", "count.py", "5", "0", "-")
    (lost,) = [RunStore(path.parent) for path in runs_dir.glob("*/remote.json") if path.parent != copy.dir]
    wait_for(lambda: lost.state().state == "failed" and not lost.is_locked())
    assert (lost.state().error or {})["title"] == "The run is not on box"


def test_a_checkpoint_is_fetched_through_a_cut(machine: SshServer, runs_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(TEXT)
    machine.runs.mkdir()
    origin = make_run(tmp_path, runs_dir=machine.runs)
    kept = origin.data / "model" / "config.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}", encoding="utf-8")
    kept.with_name("code.py").write_text("raise SystemExit", encoding="utf-8")
    copy = RunStore(runs_dir / origin.dir.name)
    shutil.copytree(origin.dir, copy.dir, ignore=shutil.ignore_patterns("checkpoints", "data"))
    remote = RemoteRun("box", str(origin.dir))
    write_remote(copy.dir, remote)

    def cut(_: str) -> None:
        if list(copy.checkpoints.rglob("*.safetensors")):
            machine.cut()

    with serving(find_machine("box")) as session, pytest.raises(UnreachableError) as broke:
        Fetching(session, copy, remote, cut).fetch(None)
    assert "What has arrived is kept" in broke.value.next_step
    assert not (copy.checkpoints / "2" / "manifest.json").exists(), "half a checkpoint is none"
    with serving(find_machine("box")) as session:
        assert Fetching(session, copy, remote, lambda _: None).fetch(None) == (2, False)
    names = {path.name for path in (origin.checkpoints / "2").iterdir()}
    assert {path.name for path in (copy.checkpoints / "2").iterdir()} == names
    assert [path.name for path in (copy.data / "model").iterdir()] == ["config.json"], "what is kept of a base model"
