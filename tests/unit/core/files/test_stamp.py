"""Stamps of files."""

from __future__ import annotations

import os
from pathlib import Path

from core.files.atomic import write_atomic
from core.files.stamp import stamp_of


def test_two_replacements_within_a_tick_of_the_clock_differ(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    stamps = []
    for text in ("running_", "finished"):
        write_atomic(path, text)
        os.utime(path, ns=(10**18, 10**18))
        stamps.append(stamp_of(path))
        assert stamp_of(path) == stamps[-1] is not None
    assert stamps[0] != stamps[1]


def test_a_file_that_grows_and_one_that_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert stamp_of(path) is None
    path.write_bytes(b"a")
    first = stamp_of(path)
    with path.open("ab") as file:
        file.write(b"b")
    os.utime(path, ns=(first.changed_ns, first.changed_ns) if first else None)
    assert first is not None and stamp_of(path) not in (None, first)
