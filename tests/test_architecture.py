"""What a program loads: the wall between core, window and ranks as it is at run time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 100.0
# The window on an empty folder of runs: what is loaded when it is painted first.
PAINTED = """
import json, sys
from pathlib import Path
from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication
from app.main import Rankdeck
from tests.helpers.settings_file import settings_in
from app.style.theme import Theme
class First(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint and not loaded:
            loaded.extend(sys.modules)
            QTimer.singleShot(0, watched.close_now)
        return False
loaded = []
app = QApplication([])
Theme(app)
place = Path(sys.argv[1])
rankdeck = Rankdeck(settings_in(place / "settings.ini"), place)
first = First()
rankdeck.window.installEventFilter(first)
rankdeck.open()
app.exec()
print(json.dumps(loaded))
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=LIMIT_S,
        check=False,
    )


def modules_below(package: str) -> Iterator[str]:
    """Every module of a package that is not a program of its own."""
    for path in sorted((ROOT / package).rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if not name.endswith("__main__"):
            yield name


def loaded_by(modules: list[str], unwanted: list[str]) -> list[str]:
    """Which of the unwanted packages are there after importing modules in a fresh process."""
    program = (
        "import importlib, json, sys\n"
        "for name in json.loads(sys.argv[1]): importlib.import_module(name)\n"
        "print(json.dumps([name for name in json.loads(sys.argv[2]) if name in sys.modules]))\n"
    )
    answer = run("-c", program, json.dumps(modules), json.dumps(unwanted))
    assert answer.returncode == 0, answer.stderr
    found: list[str] = json.loads(answer.stdout)
    return found


@pytest.mark.windows
def test_core_needs_no_qt_torch_or_numpy() -> None:
    other_platform = (".posix", "processes.launcher") if os.name == "nt" else (".windows", ".pdh")
    modules = [name for name in modules_below("core") if not name.endswith(other_platform)]
    assert len(modules) > 20
    assert loaded_by(modules, ["PySide6", "pyqtgraph", "torch", "numpy", "safetensors", "app", "workers"]) == []


@pytest.mark.windows
def test_the_window_does_not_load_torch() -> None:
    assert loaded_by(["app.main"], ["torch", "workers", "safetensors"]) == []
    assert "PySide6" in loaded_by(["app.main"], ["PySide6"])


@pytest.mark.windows
def test_the_window_is_there_before_the_library_of_its_plots() -> None:
    """It takes a third of the time to the first paint, and must find the binding that is loaded: never another."""
    assert loaded_by(["app.main"], ["pyqtgraph"]) == []
    bindings = ["PyQt5", "PyQt6", "PySide2"]
    assert loaded_by(["app.charts.plots_panel"], ["pyqtgraph", *bindings]) == ["pyqtgraph"]


@pytest.mark.windows
def test_the_first_painting_needs_only_what_is_seen(tmp_path: Path) -> None:
    """Every module more keeps the person waiting: what a controller needs for its work comes with that work."""
    answer = run("-c", PAINTED, str(tmp_path))
    assert answer.returncode == 0, answer.stderr
    loaded = json.loads(answer.stdout.splitlines()[-1])
    late = (
        "numpy", "pyqtgraph", "pynvml", "core.client", "core.checkpoints", "core.compare", "core.data",
        "core.export.export", "core.host", "core.launch", "core.ledger", "core.measure.link",
        "core.measure.ranks", "core.protocol.messages", "core.recipes.catalog", "core.resume",
        "app.run_data.run_series", "app.plots", "app.charts", "app.form", "app.new_run",
        "app.devices.device_picker", "app.draft.draft", "app.draft.draft_checks_controller",
        "app.compare.compare_page", "app.launch.resume_dialog",
        "app.launch.resume_choices", "app.machine.environment_dialog", "app.machine.doctor_page",
        "app.preferences.settings_dialog", "app.preferences.about_dialog",
    )  # fmt: skip
    assert [name for name in loaded if name.startswith(tuple(f"{part}." for part in late)) or name in late] == []


@pytest.mark.windows
def test_the_command_line_is_light() -> None:
    # It runs in scripts, often: what only a training needs must not be paid for by `rankdeck runs`.
    assert loaded_by(["core.cli"], ["PySide6", "torch", "numpy", "hypothesis", "pytest"]) == []


@pytest.mark.windows
def test_the_installer_is_pure_python() -> None:
    programs = ("installer.bootstrap", "installer.wheel_hook")  # hatchling calls the hook when it builds a wheel
    modules = ", ".join(name for name in modules_below("installer") if name not in programs)
    program = f"import sys; sys.path.insert(0, sys.argv[1]); import {modules}"
    answer = subprocess.run(
        # -I -S: nothing but the standard library can be imported.
        [sys.executable, "-I", "-S", "-c", program, str(ROOT)], capture_output=True, text=True, timeout=60, check=False
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr


def test_only_what_shards_loads_fsdp() -> None:
    """It brings 600 modules, a quarter of the time to import PyTorch: exports, previews and self-tests need none."""
    pytest.importorskip("torch", reason="imports what trains")
    modules = ["workers.recipe_api", "workers.strategies", "workers.training.session"]
    assert loaded_by(modules, ["torch", "torch.distributed.fsdp"]) == ["torch"]


def test_every_test_file_is_in_a_package() -> None:
    # Two test files of one name in folders that are no packages hide one another.
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    assert [str(folder.relative_to(ROOT)) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


def test_what_is_shown_knows_no_controller() -> None:
    """Widgets, models and texts are driven, by controllers and `app.main`: each can be shown and tested alone."""
    driving = ("main.py", "_controller.py")
    others = [path for path in (ROOT / "app").rglob("*.py") if not path.name.endswith(driving)]
    assert len(others) > 100
    assert [path.name for path in others if "_controller import" in path.read_text(encoding="utf-8")] == []
