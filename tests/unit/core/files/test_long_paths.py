"""Windows' limit of 260 characters."""

from __future__ import annotations

import errno
import os
from dataclasses import fields
from pathlib import Path

import pytest

from core.errors import PreflightError
from core.files import long_paths
from core.files.atomic import explain, write_atomic
from core.files.long_paths import is_too_long, room_in
from core.launch.preflight import check_path_length
from core.machine.devices.device import DeviceSample
from core.metrics.column_index import safe_stem

LONG = "C:\\" + "r" * 250


def missing(path: str) -> OSError:
    return FileNotFoundError(errno.ENOENT, "The system cannot find the path specified", path)


def test_windows_calls_a_long_path_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_paths, "long_paths_enabled", lambda: False)
    assert is_too_long(missing(LONG), windows=True)
    assert not is_too_long(missing("C:\\short"), windows=True)
    assert not is_too_long(missing(LONG), windows=False)
    monkeypatch.setattr(long_paths, "long_paths_enabled", lambda: True)
    assert not is_too_long(missing(LONG), windows=True)


def test_a_name_too_long_is_said_on_every_system(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught:
        (tmp_path / ("n" * 300)).open("wb")
    assert explain(caught.value, "It could not be written").title in ("The path is too long", "Disk error")
    assert is_too_long(OSError(errno.ENAMETOOLONG, "too long"))


def test_the_room_below_a_folder_is_that_of_the_longest_file_of_a_run() -> None:
    """A column whose name a script chose, in the group of a rank."""
    deepest = Path("columns") / "rank1234" / f"{safe_stem('m' * 200, ())}.f64"
    assert len(str(deepest)) < long_paths.IN_A_RUN
    folder = Path(os.sep, "runs")
    room = room_in(folder, of_runs=False)
    assert len(str(folder.absolute())) + 1 + len(str(deepest)) + room <= long_paths.LONGEST_PATH
    assert room - room_in(folder, of_runs=True) == long_paths.RUN_NAME + 1


def test_the_room_below_a_built_in_recipes_folder_is_that_of_a_gpu() -> None:
    gpu = safe_stem("device/GPU-12345678-1234-1234-1234-123456789012", ())
    longest = max((field.name for field in fields(DeviceSample)), key=len)
    assert len(str(Path("columns", gpu, f"{longest}.f64"))) < long_paths.IN_A_BUILT_IN_RUN < long_paths.IN_A_RUN


def test_a_runs_folder_that_is_too_deep_is_refused_before_anything_is_written() -> None:
    folder = Path(os.sep, "r" * 180)
    with pytest.raises(PreflightError, match="too long for the files") as caught:
        check_path_length(folder, of_runs=True, limited=True)
    assert caught.value.title == "The path is too long"
    assert check_path_length(folder, of_runs=True, limited=False) == ()
    assert check_path_length(Path(os.sep, "runs"), of_runs=True, limited=True) == ()
    (note,) = check_path_length(Path(os.sep, "r" * 120), of_runs=True, limited=True)
    assert "names of metrics" in note
    built_in = long_paths.IN_A_BUILT_IN_RUN
    assert check_path_length(Path(os.sep, "r" * 120), of_runs=True, below=built_in, limited=True) == ()


@pytest.mark.skipif(os.name == "nt" and not long_paths.long_paths_enabled(), reason="long paths are off here")
def test_long_paths_are_written_where_they_are_possible(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["folder" * 8] * 6)
    folder.mkdir(parents=True)
    write_atomic(folder / "a.txt", "text")
    assert len(str(folder)) > long_paths.LONGEST_PATH
    assert (folder / "a.txt").read_text(encoding="utf-8") == "text"
