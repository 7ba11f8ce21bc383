"""A machine that was taken over: nothing that it answers is taken unless it was asked for, and nothing dies of it."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.checkpoints.store import CheckpointStore
from core.errors import PreflightError, ProtocolError, RankdeckError
from core.machines import follow, run_copy, session, setup
from core.machines.answers import Output, Resumed, Started
from core.machines.fetch import PART, Fetching
from core.machines.follow import Follower
from core.machines.machine import Machine
from core.machines.run_copy import catch_up
from core.machines.session import Session, look_at, serving
from core.machines.tree import Tree
from core.run_folder.remote_run import RemoteRun
from core.run_folder.store import RunStore
from tests.helpers.made_runs import TEXT, make_run

MACHINE = Machine("box", "box.lan", python="/python")
REMOTE = RemoteRun("box", "/there/run")
HELLO = {
    "ready": session.agent.READY, "python": [3, 11, 2], "executable": "/python",
    "own_python": "/own", "own_folder": "/folder", "has_own_python": True,
}  # fmt: skip
BEGINNING = [HELLO, {"missing": {}}, {"path": "/x"}, {"ready": "x", "runs_dir": "/runs"}]
DONE = {"done": True}
Frames = list[dict[str, Any] | bytes]
Act = Callable[[RunStore], object]


class Pipe(io.RawIOBase):
    """What a machine sends; ends when the connection is ended."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.chunks = iter(chunks)
        self.rest = b""
        self.ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.rest:
            if self.ended or (chunk := next(self.chunks, None)) is None:
                return 0
            self.rest = chunk
        count = min(len(buffer), len(self.rest))
        buffer[:count], self.rest = self.rest[:count], self.rest[count:]
        return count


class Ssh:
    """An ssh whose other side is a script."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.pipe = Pipe(chunks)
        self.stdin, self.stderr = io.BytesIO(), io.BytesIO()
        self.stdin.close = lambda: None  # type: ignore[method-assign]  # nothing reads it
        self.stdout = io.BufferedReader(self.pipe)
        self.returncode = 255

    def wait(self, _timeout_s: float) -> int:
        return 255

    def kill(self) -> None:
        self.pipe.ended = True


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Callable[[Iterable[bytes]], None]:
    """Has the machine say these bytes on its next connection."""
    monkeypatch.setattr(session, "find_ssh", lambda: "ssh")
    monkeypatch.setattr(session, "own_code", lambda: Tree("rankdeck", ()))
    monkeypatch.setattr(follow, "find_machine", lambda _: MACHINE)
    monkeypatch.setattr(time, "sleep", lambda _: None)

    def play(chunks: Iterable[bytes]) -> None:
        monkeypatch.setattr(session.subprocess, "Popen", lambda *_, **__: Ssh(chunks))

    return play


@pytest.fixture
def untimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a timer's thread around each frame: thousands of frames take longer to guard than to read."""
    monkeypatch.setattr(Session, "_within", lambda *_: contextlib.nullcontext())


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    (tmp_path / "text.txt").write_bytes(TEXT)
    return make_run(tmp_path, checkpoints=0)


def encoded(frames: Frames) -> Iterator[bytes]:
    for frame in frames:
        yield frame if isinstance(frame, bytes) else json.dumps(frame).encode("ascii", "backslashreplace") + b"\n"


def manifest(**changes: Any) -> bytes:
    """That of a checkpoint with one small file."""
    files = {"weights.safetensors": {"size": 3, "sha256": hashlib.sha256(b"abc").hexdigest()}}
    values = {"format": "rankdeck-checkpoint", "version": 1, "checkpoint": 1, "step": 5, "created": 1.0, "mode": "ddp"}
    values |= {"world_size": 1, "val_loss": None, "positions": {}, "files": files, "devices": [], "diverged": []}
    return json.dumps({**values, **changes}).encode()


def block(data: bytes) -> Frames:
    return [{"bytes": len(data)}, data, DONE]


KEPT = {"path": "data/model/config.json", "size": 2, "sha256": hashlib.sha256(b"{}").hexdigest()}
LISTED = {"checkpoint": 1, "kept": [], "model": None}
MODEL = {"path": "model.safetensors", "size": 3, "sha256": hashlib.sha256(b"abc").hexdigest()}
PLATFORM = {"name": "linux", "torch_version": "2.13.0", "cuda_build": None, "physical_cores": 2}
STATE = {"format": "rankdeck-state", "version": 2, "run_id": "run", "state": "stopped", "step": 3}


def serve(act: Callable[[Session, RunStore], object]) -> Act:
    """`act` over a connection."""

    def run(store: RunStore) -> object:
        with serving(MACHINE) as connection:
            return act(connection, store)

    return run


def fetching(session: Session, store: RunStore) -> Fetching:
    return Fetching(session, store, REMOTE, lambda _: None)


SCENES: dict[str, tuple[Act, Frames]] = {
    "look": (
        lambda _: look_at(MACHINE),
        [{
            "devices": [{"uuid": "cpu:0", "kind": "cpu", "index": 0, "name": "CPU", "memory_bytes": 5}],
            "platform": PLATFORM, "problem": None,
        }],
    ),
    "program": (serve(lambda one, _: setup._run(one, "x", ["x"], lambda _: None)), [{"line": "x"}, {"code": 0}]),
    "start": (
        serve(lambda one, _: one.ask({"op": "start"}, Started)),
        [{"run_dir": "/r", "notes": ["n"]}],
    ),
    "resume": (serve(lambda one, _: one.ask({"op": "resume"}, Resumed)), [{"lines": ["a"]}]),
    "fetch": (
        serve(lambda one, store: fetching(one, store).fetch(None)),
        [{**LISTED, "kept": [KEPT]}, *block(b"{}"), *block(manifest()), *block(b"abc")],
    ),
    "model": (
        serve(lambda one, store: fetching(one, store).fetch(None, with_model=True)),
        [{"checkpoint": None, "kept": [], "model": MODEL}, *block(b"abc")],
    ),
    "catch up": (
        serve(lambda one, store: catch_up(one, store, REMOTE)),
        [
            {"restart": "metrics.jsonl"}, {"file": "metrics.jsonl", "offset": 0, "bytes": 3}, b"{}\n",
            {"whole": "run.toml", "version": "1", "bytes": 3}, b"a=1", {"state": STATE, "live": False}, DONE,
        ],
    ),
    "follow": (
        lambda store: Follower(store, REMOTE)._followed(),
        [{"state": {**STATE, "state": "training"}, "live": True, "port": 5, "token": "t"}, DONE],
    ),
    "refusal": (
        serve(lambda one, _: one.ask({"op": "resume"}, Resumed)),
        [{"error": {"title": "t", "cause": "c", "next_step": "n", "window_step": "w", "exit_code": 2}}],
    ),
}  # fmt: skip
MISSING = object()
BAD: tuple[Any, ...] = (
    *(MISSING, None, True, -1, 0, 2**70, 10**400, 1.5, float("nan"), float("inf"), "", "x" * 200_000, "../x", "\ud800"),
    *([], {}, [[]], [None], {"a": 1}, json.loads("[" * 70 + "]" * 70), "/etc/passwd", "\0", "run.toml", "host.json"),
)


def places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where each value of a frame is."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def changed(frame: dict[str, Any], path: tuple[Any, ...], bad: object) -> dict[str, Any]:
    made = copy.deepcopy(frame)
    holder: Any = made
    for key in path[:-1]:
        holder = holder[key]
    if bad is MISSING:
        del holder[path[-1]]
    else:
        holder[path[-1]] = bad
    return made


def attempt(act: Act, store: RunStore) -> None:
    try:
        act(store)
    except RankdeckError as error:
        assert error.title and error.cause and error.next_step


@pytest.mark.usefixtures("untimed")
@pytest.mark.parametrize("scene", SCENES)
def test_every_field_of_every_answer_is_checked(
    scene: str, store: RunStore, says: Callable[[Iterable[bytes]], None]
) -> None:
    act, frames = SCENES[scene]
    whole: Frames = [*BEGINNING, *frames]
    sent = list(encoded(whole))
    says(sent)
    attempt(act, store)
    outside = sorted(store.dir.parent.rglob("*"))
    first = 0 if scene == "look" else len(BEGINNING)
    for at, frame in enumerate(whole):
        if at >= first and isinstance(frame, dict):
            for path, bad in itertools.product(places(frame), BAD):
                says([*sent[:at], *encoded([changed(frame, path, bad)]), *sent[at + 1 :]])
                attempt(act, store)
    new = {path.relative_to(store.dir).parts[0] for path in store.dir.rglob("*")}
    assert [path for path in sorted(store.dir.parent.rglob("*")) if store.dir not in path.parents] == [
        path for path in outside if store.dir not in path.parents
    ]
    assert store.config().dataset_file.endswith("text.txt") and "passwd" not in new


@pytest.mark.usefixtures("untimed")
@pytest.mark.parametrize("scene", SCENES)
def test_a_stream_that_is_cut_or_garbage_is_an_error(
    scene: str, store: RunStore, says: Callable[[Iterable[bytes]], None]
) -> None:
    act, frames = SCENES[scene]
    whole = b"".join(encoded([*BEGINNING, *frames]))
    head = len(b"".join(encoded([*BEGINNING])))
    for end in range(head, len(whole), max(1, (len(whole) - head) // 20)):
        says([whole[:end]])
        attempt(act, store)
    for garbage in (b"\n", b"null\n", b"[1]\n", b"\xff\xfe\0\n", b"{\n", b"[" * 5000 + b"\n", b'{"a":' * 5000 + b"\n"):
        says([whole[:head], garbage * 3])
        attempt(act, store)


@pytest.mark.parametrize("chunk", [b"x" * (1 << 20), b'{"line": "x"}\n'])
def test_a_stream_that_never_ends_is_left(
    chunk: bytes, store: RunStore, says: Callable[[Iterable[bytes]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "LINE_BYTES", 4 << 20)
    head = b"".join(encoded([*BEGINNING]))
    says(itertools.chain([head], itertools.repeat(chunk)))
    act = serve(lambda one, _: list(one.stream({"op": "doctor"}, Output, most=1000)))
    with pytest.raises(ProtocolError, match=r"too long|more than 1,000 frames"):
        act(store)


def test_a_machine_that_drips_is_given_up(says: Callable[[Iterable[bytes]], None]) -> None:
    pause = threading.Event().wait  # `time.sleep` does not wait here

    def drip() -> Iterator[bytes]:
        yield from encoded([*BEGINNING])
        while True:
            pause(0.02)
            yield b" "

    says(drip())
    with serving(MACHINE) as one, pytest.raises(RankdeckError, match="did not answer in time"):
        one.ask({"op": "resume"}, Resumed, 0.3)


NAMES = (
    *("../../evil", "run.toml", "sitecustomize.py", "weights.safetensors/../../x", "/etc/x", "train.py"),
    *("WEIGHTS.SAFETENSORS", "weights.safetensors\n", ".bashrc", "weights.pt", "C:evil", "nul", "manifest.json"),
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_only_files_of_a_checkpoint_are_fetched(
    name: str, store: RunStore, says: Callable[[Iterable[bytes]], None]
) -> None:
    files = {name: {"size": 3, "sha256": hashlib.sha256(b"abc").hexdigest()}}
    says(encoded([*BEGINNING, LISTED, *block(manifest(files=files)), *block(b"abc")]))
    before = sorted(store.dir.rglob("*"))
    with pytest.raises(ProtocolError):
        SCENES["fetch"][0](store)
    assert sorted(store.dir.rglob("*")) == before


@pytest.mark.parametrize(
    "name",
    ["data/model/code.py", "data/model/../../run.toml", "data/x/config.json", "data/model/model.safetensors", "x"],
)
def test_only_a_base_models_files_are_fetched(
    name: str, store: RunStore, says: Callable[[Iterable[bytes]], None]
) -> None:
    says(encoded([*BEGINNING, {**LISTED, "kept": [{**KEPT, "path": name}]}, *block(b"{}"), *block(manifest())]))
    before = sorted(store.dir.rglob("*"))
    with pytest.raises(ProtocolError):
        SCENES["fetch"][0](store)
    assert sorted(store.dir.rglob("*")) == before


def test_a_file_ends_where_its_manifest_says(store: RunStore, says: Callable[[Iterable[bytes]], None]) -> None:
    flood = itertools.chain.from_iterable(itertools.repeat([b'{"bytes": 1048576}\n', b"x" * (1 << 20)]))
    says(itertools.chain(encoded([*BEGINNING, LISTED, *block(manifest())]), flood))
    with pytest.raises(ProtocolError, match="more than the 3 bytes"):
        SCENES["fetch"][0](store)
    part = store.checkpoints / "1" / f"weights.safetensors{PART}"
    assert not part.exists() or part.stat().st_size <= 3
    says(encoded([*BEGINNING, LISTED, *block(manifest()), *block(b"abd")]))
    with pytest.raises(RankdeckError, match="other content"):
        SCENES["fetch"][0](store)
    assert CheckpointStore(store.checkpoints).list() == []
    says(encoded([*BEGINNING, LISTED, *block(manifest()), *block(b"abc")]))
    assert SCENES["fetch"][0](store) == (1, False)


def test_the_disk_is_asked_before_anything_is_fetched(
    store: RunStore, says: Callable[[Iterable[bytes]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_copy, "RESERVE_BYTES", 1 << 60)
    for scene in ("fetch", "model", "catch up"):
        says(encoded([*BEGINNING, *SCENES[scene][1]]))
        with pytest.raises(PreflightError, match="free"):
            SCENES[scene][0](store)
    assert not list(store.dir.rglob(f"*{PART}"))
