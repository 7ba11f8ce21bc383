"""A folder of runs in which one entry is broken: the others are listed, and nothing is waited for."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.runs.run_scanner import RunScanner
from core.cli import main
from core.compare.comparison import compare_runs
from core.compare.figures import read_figures
from core.errors import RankdeckError
from core.export.export import export_run
from core.export.lines import MetricsLines
from core.machine.platform import Platform
from core.measure.estimate.history import history
from core.metrics.curve import read_curve
from core.metrics.metrics_file import MetricsTail, whole_bytes
from core.resume.planner import plan_resume
from core.run_folder.record import read_record
from core.run_folder.removal import delete_run, recycle_run
from core.run_folder.store import RunStore, find_run, list_runs
from tests.helpers.made_runs import TEXT, make_run

FILES = (
    *("state.json", "run.toml", "metrics.jsonl", "notes.json", "remote.json", "host.lock", "memory.json"),
    *("chunk_tracker_state.json", "checkpoints", "logs"),
)
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="links need a right there, and devices are no files")
COMMANDS = (["runs"], ["find", "mode:ddp"], ["show", "good"], ["estimate", "--history"], ["show", "bad"])


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def terminal(path: Path) -> None:
    path.symlink_to("/dev/tty")


def nowhere(path: Path) -> None:
    path.symlink_to("missing")


def folder(path: Path) -> None:
    path.mkdir()


def holes(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 42)


DAMAGE: tuple[Callable[[Path], None], ...] = (link_to_itself, pipe, endless, terminal, nowhere, folder, holes)


@pytest.fixture
def runs(tmp_path: Path, runs_dir: Path) -> Path:
    """Three runs: "good", "other", and "bad" for damage."""
    (tmp_path / "text.txt").write_bytes(TEXT)
    made = make_run(tmp_path, runs_dir=runs_dir)
    line = b'{"ts": 1.0, "event": "step", "rank": 0, "attempt": 1, "step": 20, "loss": 2.0}\n'
    made.metrics.write_bytes(line)
    for name in ("good", "other", "bad"):
        shutil.copytree(made.dir, runs_dir / name)
    shutil.rmtree(made.dir)
    return runs_dir


def listed(runs: Path) -> set[str]:
    """The runs in the window's list, which must be those of the command line's."""
    names = {row.record.path.name for row in RunScanner(runs).scan()}
    assert names == {entry.path.name for entry in list_runs(runs)}
    return names


@POSIX
@pytest.mark.parametrize("damage", DAMAGE)
def test_one_broken_entry_takes_nothing_else_away(
    runs: Path, damage: Callable[[Path], None], capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(runs / "bad")
    damage(runs / "bad")
    for command in COMMANDS:
        assert main(command) in (0, 2), command
        out, err = capfd.readouterr()
        assert "Traceback" not in err and "unexpectedly" not in err
        assert "bad" in command or command[0] in ("estimate", "slurm") or "good" in out, command
    assert listed(runs) >= {"good", "other"}


@POSIX
@pytest.mark.parametrize("damage", [link_to_itself, pipe])
def test_a_broken_file_of_a_run_is_waited_for_nowhere(runs: Path, damage: Callable[[Path], None]) -> None:
    for name in FILES:
        store = RunStore(Path(shutil.copytree(runs / "good", runs / "bad", dirs_exist_ok=True)))
        file = store.dir / name
        shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)
        damage(file)
        assert listed(runs) == {"good", "other", "bad"}, name
        for read in (
            lambda: [read_record(entry) for entry in list_runs(runs)],
            lambda: compare_runs([RunStore(entry.path) for entry in list_runs(runs)]),
            lambda: plan_resume("bad", runs, available=(), platform=Platform("linux", "2.13.0+cpu", None, 2)),
            lambda: find_run(runs, "bad").refuse_links(),
            lambda: history(runs),
            lambda: export_run(RunStore(runs / "bad"), "csv"),
            lambda: export_run(RunStore(runs / "bad"), "safetensors"),
        ):
            with contextlib.suppress(RankdeckError):
                read()
        shutil.rmtree(store.dir)


@POSIX
@pytest.mark.parametrize("damage", DAMAGE)
def test_metrics_that_are_no_file_are_not_read(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    store = RunStore(tmp_path)
    damage(store.metrics)
    reads: tuple[Callable[[], object], ...] = (
        lambda: read_figures(store),
        lambda: read_curve(store.columns, store.metrics, ["loss"]),
        lambda: whole_bytes(store.metrics),
        lambda: MetricsTail(store.metrics).read(),
        lambda: list(MetricsLines(store.metrics).read()),
    )
    for read in reads:
        try:
            assert read() is not None
        except RankdeckError as error:
            assert str(store.metrics) in error.cause


def test_a_disk_that_fails_below_one_run_shows_the_others(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    real = Path.stat

    def stat(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if "bad" in path.parts:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return real(path, follow_symlinks=follow_symlinks)

    with monkeypatch.context() as broken:
        broken.setattr(Path, "stat", stat)
        for command in COMMANDS:
            assert main(command) in (0, 1, 2), command
            assert "unexpectedly" not in capfd.readouterr().err, command
        assert listed(runs) == {"good", "other", "bad"}


@POSIX
def test_of_a_run_that_is_a_link_only_the_link_is_removed(runs: Path, tmp_path: Path) -> None:
    target = (runs / "bad").rename(tmp_path / "elsewhere")
    before = sorted((path, path.lstat().st_mtime_ns) for path in (target, *target.rglob("*")))
    for to, remove in ((target, recycle_run), (os.path.relpath(target, runs), delete_run)):
        (runs / "bad").symlink_to(to)
        remove(RunStore.open(runs / "bad"))
        assert not os.path.lexists(runs / "bad")
    assert sorted((path, path.lstat().st_mtime_ns) for path in (target, *target.rglob("*"))) == before
