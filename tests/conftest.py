"""What every test gets: a run folder of its own, no screen, and a check that it leaves nothing behind.

A failing test that started runs shows what their processes wrote (`logs/*.log`), because that is where the
reason stands.
"""

from __future__ import annotations

import atexit
import gc
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests import tiers
from tests.helpers import forking, leaks, run_logs
from tests.helpers.wine import PATIENCE, UNDER_WINE

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from tests.helpers.net_nodes import NetNodes

if sys.platform != "win32":
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

# Every path that tests use has a space and letters outside ASCII, as people's folders do.
RUNS_NAME: Final = "Läufe mit Raum"
LEAK_LIMIT_S: Final = 3.0
LIMIT_S: Final = 240.0  # of a test that says none: pyproject.toml's `timeout`
TESTS: Final = Path(__file__).parent
# What the tests in each of these folders are marked as.
LEVELS: Final = {
    "unit": "needs no run and no PyTorch",
    "runs": "starts real processes: run hosts with fake ranks, scripts, windows",
    "training": "needs PyTorch, and mostly trains",
}
# Folders below `unit` whose tests are all marked `windows`: one that forgot it would not run where it matters.
ALSO_ON_WINDOWS: Final = (
    *("core/checkpoints", "core/config", "core/data", "core/environments", "core/export", "core/files", "core/host"),
    *("core/ledger", "core/machine", "core/processes", "core/recipes"),
    *("workers/data/tokens", "workers/host_link", "workers/programs", "workers/recipe_api", "workers/recipes"),
    "workers/script",
)
LEFT_OUT: Final = pytest.StashKey[int]()
_numbers = itertools.count()


def pytest_configure(config: pytest.Config) -> None:
    """Keeps the person's own settings and runs out of reach, also while modules are imported.

    Test files run side by side on all cores: threads of torch's that share the work of one tiny tensor, and wait for
    each other by spinning, would only take time from other tests.
    """
    config.addinivalue_line("markers", "spawned: its run hosts and ranks start as a person's do, and are not forked")
    for name, words in (LEVELS | tiers.TIERS).items():
        config.addinivalue_line("markers", f"{name}: {words}")
    gc.disable()  # until all is collected: what tests import stays
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes would compile our modules anew
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if UNDER_WINE:  # there a product in bf16 crashes on a processor with AMX, which this leaves alone
        os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
    home = Path(tempfile.mkdtemp(prefix="rankdeck tests "))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ["RANKDECK_HOME"] = str(home / RUNS_NAME)
    os.environ["XDG_CONFIG_HOME"] = str(home / "config")
    os.environ["XDG_DATA_HOME"] = str(home / "data")  # what a person has chosen lies there
    os.environ["WIN_PD_OVERRIDE_LOCAL_APPDATA"] = str(home / "data")  # the same on Windows, by platformdirs
    if not hasattr(config, "workerinput"):  # pytest-xdist's workers share their controller's servers
        forking.own_servers(home)


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests with level and tier; spreads files that mostly wait between files that train, to share cores well.

    Files with slow tests are all begun within the first three quarters: nothing long is left when all else is done.
    """
    for item in items:
        place = item.path.relative_to(TESTS)
        if (level := place.parts[0]) in LEVELS:
            item.add_marker(level)
        if any(place.is_relative_to(Path("unit") / folder) for folder in ALSO_ON_WINDOWS):
            item.add_marker("windows")
        if UNDER_WINE:
            limit = item.get_closest_marker("timeout")
            item.add_marker(pytest.mark.timeout(PATIENCE * (limit.args[0] if limit else LIMIT_S)), append=False)
    tiers.mark(items)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    files = list(dict.fromkeys(item.path for item in items))
    quick = [path for path in files if path not in slow]
    place = _spread([path for path in files if path in slow], 0.75) | _spread(quick, 1.0)
    items.sort(key=lambda item: place[item.path])


def _spread(files: list[Path], end: float) -> dict[Path, float]:
    return {path: end * number / len(files) for number, path in enumerate(files)}


def pytest_collection_finish() -> None:
    """What is there by now stays: nobody need look through it again, neither Python nor the search for leaks."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def runs_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for this test's runs; it is also what the command line and the window use by default."""
    folder = tmp_path / RUNS_NAME
    folder.mkdir()
    monkeypatch.setenv("RANKDECK_HOME", str(folder))
    return folder


@pytest.fixture
def recycle_bin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data home"))
    return tmp_path / "data home" / "Trash"


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[NetNodes]:
    from tests.helpers.net_nodes import NetNodes  # here: few tests need it

    folder = tmp_path / "machines"
    folder.mkdir()
    made = NetNodes(folder)
    yield made
    made.close()


@pytest.fixture
def qtbot(request: pytest.FixtureRequest) -> QtBot:
    from tests.helpers.patient_bot import PatientBot  # here: most tests need no Qt

    request.getfixturevalue("qapp")
    return PatientBot(request)


@pytest.fixture
def _own_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test's own folder. It exists only for a test that asks for one: to make it takes longer than a small test."""
    if "tmp_path" in request.fixturenames:
        folder: Path = request.getfixturevalue("tmp_path")
        return folder
    return tmp_path_factory.getbasetemp() / "not asked for" / str(next(_numbers))


@pytest.fixture(autouse=True)
def _own_home(_own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that a test starts without a folder belong to that test."""
    monkeypatch.setenv("RANKDECK_HOME", str(_own_folder / RUNS_NAME))


@pytest.fixture(autouse=True)
def _leaves_nothing_behind(request: pytest.FixtureRequest, _own_folder: Path) -> Iterator[None]:
    """Fails a test after which a thread, process, socket, Qt timer, Qt thread or top-level widget is still there."""
    uses_qt = bool({"qtbot", "qapp"} & set(request.fixturenames))
    if uses_qt:
        _show_qts_own_dialogs()
        # Any thread would collect; what is in a cycle with a widget must end on this one (`app.threads.garbage`).
        gc.disable()
    before = leaks.Held.now(uses_qt)
    yield
    if uses_qt:
        gc.collect(0)  # all that the test has made: nothing was collected, so nothing has grown older
        gc.enable()
    left = leaks.wait_until_gone(before, uses_qt, _own_folder, LEAK_LIMIT_S)
    if left:
        leaks.end_processes(before, _own_folder)
        pytest.fail(f"{request.node.nodeid} leaves behind:\n  " + "\n  ".join(left), pytrace=False)


def _show_qts_own_dialogs() -> None:
    """Windows shows its file dialog on a thread of its own; closed at once, it ends Wine with an access violation."""
    from PySide6.QtCore import QCoreApplication, Qt

    QCoreApplication.setAttribute(Qt.ApplicationAttribute.AA_DontUseNativeDialogs)


def pytest_deselected(items: list[pytest.Item]) -> None:
    if items:
        left_out = sum(item.get_closest_marker(tiers.SECOND) is not None for item in items)
        _note_left_out(items[0].config, left_out)


def _note_left_out(config: pytest.Config, number: int) -> None:
    config.stash[LEFT_OUT] = config.stash.get(LEFT_OUT, 0) + number
    if hasattr(config, "workeroutput"):  # each of pytest-xdist's workers collects all tests
        config.workeroutput[tiers.SECOND] = config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes the number from the workers: it is the same in each."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get(tiers.SECOND, 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Says how long the tests of each level took, added up, and how many were not run."""
    spent = dict.fromkeys(LEVELS, 0.0)
    for kind in ("passed", "failed", ""):
        for report in terminalreporter.getreports(kind):
            level = report.nodeid.removeprefix("tests/").partition("/")[0]
            if level in spent and isinstance(report, pytest.TestReport):
                spent[level] += report.duration
    if any(spent.values()):
        terminalreporter.write_line(tiers.summary(spent, config.option.markexpr, config.stash.get(LEFT_OUT, 0)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if report.failed and call.when != "setup" and isinstance(folder, Path):
        report.sections.extend(run_logs.sections(folder))
    return report
