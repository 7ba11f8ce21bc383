from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from core.cli import main
from core.config import RunConfig
from core.errors import (
    ConnectionRefusedByHostError,
    NewerVersionError,
    PreflightError,
    RunBusyError,
    RunNotFoundError,
    StateFileError,
    UsageError,
)
from core.export.export import export_run
from core.files.links import LinkError
from core.metrics.metrics_file import MetricsWriter
from core.paths import data_folder
from core.processes.identity import ProcessId, own
from core.processes.lock import lock_holder
from core.run_folder.state import HOST_START_LIMIT_S, RunState
from core.run_folder.store import HostInfo, RunStore, find_run, list_runs
from tests.helpers.links import link

pytestmark = pytest.mark.windows
DEAD = ProcessId(2**22 - 7, 1.0)


@pytest.fixture
def store(runs_dir: Path) -> RunStore:
    return RunStore.create(runs_dir, RunConfig(steps=7, devices=("cpu:2",)))


def test_a_new_run_says_what_was_asked(store: RunStore) -> None:
    state = store.state()
    assert store.config() == RunConfig(steps=7, devices=("cpu:2",))
    assert state.state == "starting"
    assert state.run_id == state.name == store.dir.name
    assert state.run_id.startswith("minigpt-")
    assert (state.attempt, state.total_steps, state.devices, state.recipe) == (1, 7, ("cpu:2",), "minigpt")
    assert store.logs.is_dir()


def test_a_recipes_name_is_made_safe(runs_dir: Path) -> None:
    store = RunStore.create(runs_dir, RunConfig(recipe="C:\\my recipes/ünder scöre: v2?"))
    assert store.dir.parent == runs_dir.absolute()
    assert store.dir.name.isascii()
    assert not set(store.dir.name) & set('<>:"/\\|?* ')


def test_a_folder_of_ones_own_is_used_once(tmp_path: Path, runs_dir: Path) -> None:
    folder = tmp_path / "my run"
    assert RunStore.create(runs_dir, RunConfig(), run_dir=folder).state().run_id == "my run"
    with pytest.raises(UsageError, match="already contains a run"):
        RunStore.create(runs_dir, RunConfig(), run_dir=folder)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError, match="is a file"):
        RunStore.create(runs_dir, RunConfig(), run_dir=tmp_path / "file")


def test_a_runs_folder_that_cannot_be_made_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(PreflightError):
        RunStore.create(tmp_path / "file", RunConfig())


def test_open_wants_a_run(tmp_path: Path, store: RunStore) -> None:
    assert RunStore.open(store.dir).dir == store.dir
    for wrong in (tmp_path / "missing", tmp_path):
        with pytest.raises(RunNotFoundError):
            RunStore.open(wrong)


def test_state_comes_back_as_it_was_written(store: RunStore) -> None:
    state = store.state().replace(
        state="failed", host=own(), step=5, loss=1.5, val_loss=float("nan"), checkpoint=3, exit_code=1,
        error={"title": "t", "cause": "c", "next_step": "n"}, fallback="why", devices=("GPU-1", "cpu:0"),
    )  # fmt: skip
    store.write_state(state)
    assert store.state() == state.replace(val_loss=None)
    assert json.loads(store.state_json.read_bytes())["host"] == {"pid": own().pid, "started": own().started}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"step": "5"}, StateFileError),
        ({"updated": 1e18}, StateFileError),
        ({"host": {"pid": 1, "started": 10**399}}, StateFileError),
        ({"state": "dancing"}, StateFileError),
        ({"error": {"title": "\udfff"}}, StateFileError),
        ({"devices": ["cpu:0"] * 100_000}, StateFileError),
        ({"format": "x"}, StateFileError),
        ({"version": 3}, NewerVersionError),
    ],
)
def test_a_damaged_state_is_refused(store: RunStore, change: dict[str, object], error: type[Exception]) -> None:
    document = json.loads(store.state_json.read_bytes()) | change
    store.state_json.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(error):
        store.state()


def test_an_unknown_field_of_a_state_is_left_out(store: RunStore) -> None:
    document = json.loads(store.state_json.read_bytes()) | {"new": 1}
    assert RunState.from_dict(document) == store.state()


@pytest.mark.parametrize("word", ["starting", "training", "stopping"])
def test_a_live_state_with_a_dead_host_is_interrupted(store: RunStore, word: str) -> None:
    store.write_state(store.state().replace(state=word, host=DEAD, step=12, checkpoint=4))
    seen = store.state()
    assert seen.state == "interrupted" and seen.error is not None and "step 12" in seen.error["cause"]
    assert "rankdeck" in seen.error["next_step"] and seen.error["window_step"].startswith("Resume it. "), "no command"
    assert "resume" in seen.error["next_step"] and "checkpoint 4" in seen.error["next_step"]
    assert store.stored_state().state == word


@pytest.mark.parametrize("word", ["failed", "finished", "stopped"])
def test_a_host_that_ends_its_run_while_it_is_looked_at_is_not_interrupted(store: RunStore, word: str) -> None:
    stale = store.state().replace(state="training", host=DEAD, step=12)
    store.write_state(stale.replace(state=word, step=13))
    assert store.seen(stale) == store.stored_state()
    store.state_json.unlink()
    assert store.seen(stale).state == "interrupted"


def test_a_host_that_never_came_is_noticed(store: RunStore) -> None:
    state = store.stored_state()
    assert state.seen(now=state.updated + HOST_START_LIMIT_S - 1).state == "starting"
    assert state.seen(now=state.updated + HOST_START_LIMIT_S + 1).state == "interrupted"


def test_the_hosts_address_comes_and_goes(store: RunStore) -> None:
    assert store.read_host_json() is None
    store.write_host_json(4711, "t" * 43, 99)
    assert store.read_host_json() == HostInfo(4711, "t" * 43, 99)
    if sys.platform != "win32":
        assert store.host_json.stat().st_mode & 0o777 == 0o600
    store.remove_host_json()
    store.remove_host_json()
    assert store.read_host_json() is None


def test_a_token_stays_on_the_hosts_machine_where_several_share_the_folder(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for machine in ("node1", "node2"):
        monkeypatch.setattr("core.run_folder.host_secret.data_folder", lambda machine=machine: tmp_path / machine)
        if machine == "node1":
            store.write_host_json(4711, "t" * 43, 99, "node1 (10.0.0.1)")
            assert store.read_host_json() == HostInfo(4711, "t" * 43, 99)
            assert not any(b"ttt" in path.read_bytes() for path in store.dir.rglob("*") if path.is_file())
            secrets = list((tmp_path / "node1").rglob("*.json"))
            if sys.platform != "win32":
                assert [path.stat().st_mode & 0o777 for path in secrets] == [0o600]
            continue
        with pytest.raises(ConnectionRefusedByHostError, match=r"Run the command on node1 \(10.0.0.1\)") as raised:
            store.read_host_json()
        assert raised.value.title == "The run's host is on another machine"
        monkeypatch.setattr("core.run_folder.host_secret.data_folder", lambda: tmp_path / "node1")
    store.remove_host_json()
    assert store.read_host_json() is None and not list((tmp_path / "node1").rglob("*.json"))


@pytest.mark.parametrize("content", ["{}", "[]", '{"port": 0, "token": "x", "pid": 1}', '{"port": 1', ""])
def test_a_damaged_address_is_said(store: RunStore, content: str) -> None:
    store.host_json.write_text(content, encoding="utf-8")
    with pytest.raises(StateFileError):
        store.read_host_json()


def test_two_hosts_cannot_have_one_folder(store: RunStore) -> None:
    assert not store.is_locked()
    with store.lock():
        assert store.is_locked()
        with pytest.raises(RunBusyError, match=str(os.getpid())):
            store.lock()
    assert not store.is_locked()
    store.lock().release()


def test_a_stepped_clock_makes_no_live_run_an_interrupted_one(store: RunStore) -> None:
    # After a step of the system clock Linux tells a start time for the host that is not the one it wrote down.
    me = own()
    live = store.stored_state().replace(state="training", host=ProcessId(me.pid, me.started - 3600.0))
    store.write_state(live)
    with store.lock():
        store.lock_file.write_text(json.dumps({"pid": me.pid, "started": me.started - 3600.0}), encoding="utf-8")
        assert store.is_locked()
        assert store.state() == live
        assert [entry.word for entry in list_runs(store.dir.parent)] == ["training"]
        with pytest.raises(RunBusyError):
            store.lock()
    assert store.state().state == "interrupted"


def test_who_only_asks_for_the_lock_keeps_nobody_from_taking_it(store: RunStore) -> None:
    store.lock().release()
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            store.is_locked()

    asking = [threading.Thread(target=ask) for _ in range(2)]
    for thread in asking:
        thread.start()
    try:
        for _ in range(50):
            store.lock().release()
    finally:
        over.set()
        for thread in asking:
            thread.join()


def test_a_lock_dies_with_its_process(store: RunStore) -> None:
    script = textwrap.dedent("""
        import os, sys
        from pathlib import Path
        from core.run_folder.store import RunStore
        held = RunStore.open(Path(sys.argv[1])).lock()
        print("held", flush=True)
        sys.stdin.read()
        os._exit(9)
    """)
    root = str(Path(__file__).resolve().parents[4])
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(store.dir)], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == b"held"
        assert store.is_locked()
        with pytest.raises(RunBusyError):
            store.lock()
        child.kill()
        child.wait(timeout=30)
        holder = lock_holder(store.lock_file)
        assert holder is not None  # its name is still there, and means nothing
        assert not store.is_locked()
        store.lock().release()
    finally:
        child.kill()
        child.communicate(timeout=30)


def test_the_list_copes_with_everything(runs_dir: Path) -> None:
    assert list_runs(runs_dir / "missing") == []
    stores = [RunStore.create(runs_dir, RunConfig()) for _ in range(5)]  # of one second
    now = time.time()
    for age, made in enumerate(stores):
        made.write_state(made.stored_state().replace(created=now - age, updated=now))
    stores[1].state_json.write_bytes(b'{"format": "rankdeck-st')
    stores[2].state_json.unlink()
    stores[3].write_state(stores[3].stored_state().replace(state="training", host=DEAD))
    (runs_dir / "something else").mkdir()
    (runs_dir / "a file.txt").write_bytes(b"")
    entries = {entry.path.name: entry for entry in list_runs(runs_dir)}
    assert len(entries) == 5
    words = [entries[made.dir.name].word for made in stores]
    assert words == ["starting", "damaged", "damaged", "interrupted", "starting"]
    assert "cut off" in (entries[stores[1].dir.name].problem or "")
    assert [entry.path for entry in list_runs(runs_dir)][:3] == [stores[0].dir, stores[3].dir, stores[4].dir]


def test_a_run_is_found_by_all_its_names(runs_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = RunStore.create(runs_dir, RunConfig(), run_dir=runs_dir / "alpha-1")
    second = RunStore.create(runs_dir, RunConfig(), run_dir=runs_dir / "alpha-22")
    assert find_run(runs_dir, "alpha-1").dir == first.dir  # exact wins over a start that fits both
    assert find_run(runs_dir, "alpha-2").dir == second.dir
    assert find_run(runs_dir, str(second.dir)).dir == second.dir
    assert find_run(runs_dir, str(second.run_toml)).dir == second.dir
    second.write_state(second.stored_state().replace(name="my favourite"))
    assert find_run(runs_dir, "my favourite").dir == second.dir
    monkeypatch.chdir(runs_dir)
    assert find_run(runs_dir, "alpha-1").dir == first.dir


@pytest.mark.parametrize("text", ["alpha", "", "   ", "beta", "alpha-222", "no/such/folder"])
def test_what_names_no_run_or_several_is_refused(runs_dir: Path, text: str) -> None:
    for name in ("alpha-1", "alpha-22"):
        RunStore.create(runs_dir, RunConfig(), run_dir=runs_dir / name)
    with pytest.raises(RunNotFoundError) as caught:
        find_run(runs_dir, text)
    assert caught.value.exit_code == 2


def test_the_data_folder_is_where_earlier_versions_had_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if sys.platform == "win32":
        monkeypatch.delenv("WIN_PD_OVERRIDE_LOCAL_APPDATA", raising=False)
        assert data_folder() == Path(os.environ["LOCALAPPDATA"]) / "Rankdeck"
        return
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert data_folder() == tmp_path / ".local" / "share" / "rankdeck"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "my data"))
    assert data_folder() == tmp_path / "my data" / "rankdeck"
    monkeypatch.setenv("XDG_DATA_HOME", " ")
    assert data_folder() == tmp_path / ".local" / "share" / "rankdeck"
    assert not any(tmp_path.iterdir()), "asking makes no folder"


LINKED = ["metrics.jsonl", "host.lock", "logs", "logs/host.log", "logs/rank0.log", "columns", "data", "checkpoints"]


@pytest.mark.parametrize("name", LINKED)
def test_a_run_never_writes_through_a_link(
    store: RunStore, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that was received may point anywhere with its links; a resume would append to what they point at."""
    victim = tmp_path / "victim"
    place = store.dir / name
    if place.is_dir():
        shutil.rmtree(place)
    if "." in name:
        victim.write_text("precious", encoding="utf-8")
    else:
        victim.mkdir()
    link(place, victim)
    store.write_state(store.stored_state().replace(state="stopped"))
    assert main(["show", store.dir.name, "--runs-dir", str(store.dir.parent)]) == 0, "reading is no harm"
    capsys.readouterr()
    assert main(["resume", str(store.dir)]) == 2
    title, cause, next_step = capsys.readouterr().err.splitlines()
    assert title == "A link is in the way" and str(place) in cause and str(victim) in cause and next_step
    with pytest.raises(LinkError):
        store.lock()
    if name.startswith("metrics"):
        with pytest.raises(LinkError):
            MetricsWriter(store.metrics)
    assert list(victim.iterdir()) == [] if victim.is_dir() else victim.read_text(encoding="utf-8") == "precious"


def test_an_export_is_not_written_through_a_link(store: RunStore, tmp_path: Path) -> None:
    store.metrics.write_text('{"event": "step", "rank": 0, "ts": 1, "step": 1, "loss": 2}\n', encoding="utf-8")
    victim = tmp_path / "victim"
    victim.mkdir()
    link(store.dir / "exports", victim)
    with pytest.raises(LinkError):
        export_run(store, "csv")
    assert list(victim.iterdir()) == []
    assert export_run(store, "csv", victim / "mine").path == victim / "mine"


def test_what_a_killed_writer_left_goes_with_the_next_start(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, RunConfig())
    left = []
    for folder in ("", "data", "data/tokens", "columns", "logs", "checkpoints"):
        (store.dir / folder).mkdir(exist_ok=True)
        left.append(store.dir / folder / ".data.json.0123456789ab.rankdeck-tmp")
    of_windows = [
        store.columns / ".bins.bin.0123456789ab.rankdeck-tmp",
        store.dir / ".notes.json.0123456789ab.rankdeck-tmp",
    ]
    for path in (*left, *of_windows):
        path.write_bytes(b"half")
    store.lock().release()
    assert not [path for path in left if path.exists()]
    assert all(path.exists() for path in of_windows), "a window may be about to put it in place"
