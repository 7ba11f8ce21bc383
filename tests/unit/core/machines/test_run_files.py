"""From a run's folder there to its copy here: whole lines, from the byte that the copy has, whatever was cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.config.config_file import to_toml
from core.config.run_config import RunConfig
from core.files.atomic import write_atomic
from core.machines.answers import News
from core.machines.machine import UnreachableError
from core.machines.run_copy import RunCopy
from core.machines.run_files import send_new
from core.records import read_record
from core.run_folder.remote_run import RemoteRun, write_remote
from core.run_folder.store import RunStore

REMOTE = RemoteRun("box", "/there/run")
Stream = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def there(tmp_path: Path) -> RunStore:
    return RunStore.create(tmp_path, RunConfig(dataset_file="/there/data/a/b.txt"), tmp_path / "there")


@pytest.fixture
def here(tmp_path: Path) -> RunStore:
    return RunStore.create(tmp_path, RunConfig(), tmp_path / "here")


@pytest.fixture
def stream(there: RunStore, here: RunStore) -> Stream:
    """Updates the copy once; returns the frames that were sent for it."""
    copy = RunCopy(here)

    def run() -> list[dict[str, Any]]:
        frames = []

        def send(frame: dict[str, Any], data: bytes) -> None:
            frames.append(frame)
            copy.take(read_record(News, frame), data)

        send_new(there, copy.known(), send)
        return frames

    return run


def test_only_what_is_new_is_sent_and_only_whole_lines(there: RunStore, here: RunStore, stream: Stream) -> None:
    there.metrics.write_bytes(b'{"a":1}\n{"b":')
    stream()
    assert here.metrics.read_bytes() == b'{"a":1}\n'
    there.metrics.write_bytes(b'{"a":1}\n{"b":2}\n{"c":3}\n')
    frames = [frame for frame in stream() if "file" in frame]
    assert [frame["offset"] for frame in frames] == [8]
    assert here.metrics.read_bytes() == there.metrics.read_bytes()
    assert [frame for frame in stream() if "file" in frame] == []


def test_a_replaced_file_is_sent_again(there: RunStore, here: RunStore, stream: Stream) -> None:
    path = there.dir / "memory.json"
    write_atomic(path, "1")
    stream()
    assert not [frame for frame in stream() if "whole" in frame]
    write_atomic(path, "2")
    assert [frame["whole"] for frame in stream() if "whole" in frame] == ["memory.json"]
    assert (here.dir / "memory.json").read_text(encoding="utf-8") == "2"


def test_a_line_that_was_cut_here_comes_again(there: RunStore, here: RunStore, stream: Stream) -> None:
    there.metrics.write_bytes(b'{"a":1}\n{"b":2}\n')
    here.metrics.write_bytes(b'{"a":1}\n{"b"')
    stream()
    assert here.metrics.read_bytes() == there.metrics.read_bytes()


@pytest.mark.parametrize("kept", [b'{"x":9}\n', b'{"a":1}\n{"b":2}\n{"lost":3}\n'])
def test_another_file_is_sent_from_the_beginning(there: RunStore, here: RunStore, stream: Stream, kept: bytes) -> None:
    there.metrics.write_bytes(b'{"a":1}\n{"b":2}\n')
    here.metrics.write_bytes(kept)
    assert {"restart": "metrics.jsonl"} in stream()
    assert here.metrics.read_bytes() == there.metrics.read_bytes()


def test_logs_grow_and_settings_stay_as_they_were_sent(there: RunStore, here: RunStore, stream: Stream) -> None:
    theirs = there.config().replace(steps=7, lr=0.5, env={"LD_PRELOAD": "/evil.so"}, log_file="/home/me/.bashrc")
    theirs = theirs.replace(model="/evil", deepspeed_config="{}", options={"script": "/evil.py"})
    write_atomic(there.run_toml, to_toml(theirs))
    own = here.config()
    (there.logs / "rank0.log").write_bytes(b"no end of line")
    (there.logs / "other.txt").write_bytes(b"not a log")
    stream()
    assert (here.logs / "rank0.log").read_bytes() == b"no end of line"
    assert not (here.logs / "other.txt").exists()
    assert here.config() == own.replace(steps=7, lr=0.5), "what the copy was started with wins"


@pytest.mark.parametrize("name", ["../up", "state.json", "logs/../x", "checkpoints/1/manifest.json"])
def test_a_machine_cannot_name_other_files(here: RunStore, name: str) -> None:
    before = here.state_json.read_bytes()
    with pytest.raises(UnreachableError):
        RunCopy(here).take(News(file=name), b"x")
    RunCopy(here).take(News(whole=name), b"x")
    assert here.state_json.read_bytes() == before and not (here.dir.parent / "up").exists()


def test_bytes_that_do_not_continue_the_copy_are_refused(here: RunStore) -> None:
    with pytest.raises(UnreachableError, match="ends elsewhere"):
        RunCopy(here).take(News(file="metrics.jsonl", offset=5), b"x\n")


def test_a_copy_that_nothing_keeps_says_how_to_follow_it(here: RunStore) -> None:
    write_remote(here.dir, REMOTE)
    stored = here.stored_state()
    here.write_state(stored.replace(state="training", created=1.0, updated=1.0))
    seen = here.state()
    assert seen.state == "interrupted" and "rankdeck attach" in (seen.error or {})["next_step"]
