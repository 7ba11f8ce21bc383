"""The client: starting, finding, reaching and stopping hosts, and what it says when there is none."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from core.client import connect, resume_run, start_run, stop_run, wait_for_end
from core.config import RunConfig
from core.errors import ConnectionRefusedByHostError, RankdeckError, RunBusyError, UsageError
from core.processes.identity import ProcessId, own
from core.resume.planner import plan_resume
from core.run_folder.state import HOST_START_LIMIT_S
from core.run_folder.store import RunStore
from tests.helpers.host_fixture import FINISHED, STOPPED, FakeRun, MakeRun

pytestmark = [pytest.mark.windows, pytest.mark.spawned]


@contextmanager
def something_listens(answer: bytes | None) -> Iterator[int]:
    """A server that says `answer` to the first line and closes, or (None) never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        closing = threading.Event()

        def serve() -> None:
            server.settimeout(0.05)
            while not closing.is_set():
                try:
                    peer, _ = server.accept()
                except TimeoutError:
                    continue
                with peer:
                    peer.settimeout(5.0)
                    peer.recv(4096)
                    if answer is None:
                        closing.wait(10.0)
                    else:
                        peer.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            closing.set()
            thread.join()


def live_run(folder: Path, port: int) -> RunStore:
    """A run that says this very process is its host and listens on `port`."""
    store = RunStore.create(folder, RunConfig())
    store.write_state(store.stored_state().replace(state="training", host=own()))
    store.write_host_json(port, "a token", own().pid)
    return store


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b'{"type":"refused","reason":"The token is wrong."}\n', "The token is wrong."),
        (b'{"type":"phase","name":"x","detail":""}\n', "did not come from a run host"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not JSON"),
        (b"", "it has ended"),
        (None, "did not answer in time"),
    ],
)
def test_what_answers_wrongly_is_named(tmp_path: Path, answer: bytes | None, words: str) -> None:
    timeout_s = 0.3 if answer is None else 10.0
    with something_listens(answer) as port, pytest.raises(ConnectionRefusedByHostError, match=words) as caught:
        connect(live_run(tmp_path, port), timeout_s=timeout_s)
    assert caught.value.next_step


def test_a_port_where_nobody_listens_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionRefusedByHostError, match=str(port)):
        connect(live_run(tmp_path, port), timeout_s=0.3)


def test_a_host_that_does_not_begin_to_listen_is_waited_for_within_bounds(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, RunConfig())
    with pytest.raises(ConnectionRefusedByHostError, match="did not start listening"):
        connect(store, timeout_s=0.2)


def test_a_host_json_of_another_process_is_not_believed(tmp_path: Path) -> None:
    with something_listens(b'{"type":"welcome","protocol":1,"run_id":"x"}\n') as port:
        store = live_run(tmp_path, port)
        store.write_host_json(port, "a token", own().pid + 1)  # left over from a host that was killed
        with pytest.raises(ConnectionRefusedByHostError, match="did not start listening"):
            connect(store, timeout_s=0.2)


def test_a_run_that_is_not_going_cannot_be_stopped(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, RunConfig())
    store.write_state(store.stored_state().replace(state="finished"))
    with pytest.raises(ConnectionRefusedByHostError, match="state: finished"):
        stop_run(store)


def test_a_start_returns_at_once_and_what_goes_is_stopped_but_not_started_over(
    make_run: MakeRun, tmp_path: Path
) -> None:
    run = make_run().behave(steps=100_000, step_s=0.01).start()
    assert run.store.state().is_live
    run.wait_for_step(2)
    with pytest.raises(RunBusyError):
        resume_run(plan_resume(str(run.run_dir), tmp_path, accept_code=True))
    with pytest.raises(UsageError, match="already contains a run"):
        start_run(run.store.config(), run_dir=run.run_dir)
    stop_run(run.store)
    assert wait_for_end(run.store, 30.0).state == STOPPED
    run.end()
    assert len(run.events("stop_requested")) == 1 and not run.store.state().is_live


def test_a_name_that_cannot_be_used_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="120 characters"):
        start_run(RunConfig(), tmp_path, name="n" * 121)
    assert not list(tmp_path.iterdir())


def test_a_resume_says_at_once_that_the_run_is_starting(make_run: MakeRun) -> None:
    run = make_run().behave(steps=20).start()
    run.end()
    run.behave(steps=30)
    run.resume(steps=30)
    state = run.store.state()
    assert state.is_live and state.attempt == 2 and state.error is None
    assert run.store.config().steps == 30
    assert run.end().state == FINISHED


@pytest.mark.parametrize(
    "after_s", [0.0, 0.3, *(pytest.param(s, marks=pytest.mark.second_tier) for s in (0.05, 0.15, 0.6))]
)
def test_a_host_killed_in_its_first_second_is_known_to_be_dead_at_once(make_run: MakeRun, after_s: float) -> None:
    run = make_run().behave(steps=20_000, step_s=0.01).start()
    time.sleep(after_s)
    host = psutil.Process(spawned_pid(run))
    host.kill()
    psutil.wait_procs([host], timeout=10)
    began = time.monotonic()
    assert wait_for_end(run.store, HOST_START_LIMIT_S / 3).state == "interrupted"
    with pytest.raises(ConnectionRefusedByHostError, match="state: interrupted"):
        stop_run(run.store)
    assert time.monotonic() - began < HOST_START_LIMIT_S / 2, "it was given the time of one that starts"
    run.behave(steps=20).resume()
    assert run.end().state == FINISHED


def test_a_note_about_an_earlier_attempts_host_is_not_believed(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, RunConfig())
    store.write_spawned_host(1, ProcessId(own().pid, 1.0))
    assert store.state().state == "interrupted"
    store.write_state(store.stored_state().replace(attempt=2))
    assert store.state().state == "starting"


def test_a_host_that_takes_long_to_say_its_name_is_waited_for(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, RunConfig())
    store.write_state(store.stored_state().replace(updated=time.time() - 600.0))
    assert store.state().state == "interrupted"
    store.write_spawned_host(1, own())
    assert store.state().state == "starting"


def test_a_host_that_cannot_be_started_leaves_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.client.training_python", lambda: SimpleNamespace(executable=tmp_path / "no python"))
    with pytest.raises(RankdeckError) as caught:
        start_run(RunConfig(), tmp_path, tmp_path / "run")
    store = RunStore(tmp_path / "run")
    state, (event,) = store.state(), (json.loads(line) for line in store.metrics.read_bytes().splitlines())
    assert (state.state, state.error) == ("failed", caught.value.as_dict())
    assert event["event"] == "failed" and event["cause"] == caught.value.cause, "what Alerts shows"


def spawned_pid(run: FakeRun) -> int:
    """The host's pid as whoever started it noted it."""
    note = json.loads((run.store.dir / "host.spawned.json").read_text(encoding="utf-8"))
    return int(note["pid"])
