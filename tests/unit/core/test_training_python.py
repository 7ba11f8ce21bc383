"""The Python that trains: the one that asks where it has PyTorch, else the one that was named or chosen."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core import training_python as module
from core.errors import PreflightError
from core.launch.preflight import check_torch
from core.machine.packages import installed_version, missing_packages
from core.machine.platform import this_platform
from core.training_python import (
    FORMAT,
    VARIABLE,
    TrainingPython,
    choice_file,
    own_python,
    training_python,
    why_variable_unused,
)

pytestmark = pytest.mark.windows


@pytest.fixture(autouse=True)
def _nothing_chosen() -> Iterator[None]:
    choice_file().unlink(missing_ok=True)
    yield
    choice_file().unlink(missing_ok=True)


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """The interpreter of an environment with a PyTorch of 9.9, as files alone."""
    windows = sys.platform == "win32"
    executable = tmp_path / "env" / ("python.exe" if windows else "bin/python")
    packages = tmp_path / "env" / ("Lib/site-packages" if windows else "lib/python3.12/site-packages")
    executable.parent.mkdir(parents=True, exist_ok=True)
    executable.write_bytes(b"")
    for name, text in {
        "torch/__init__.py": "raise SystemExit('it was imported')",
        "torch/version.py": "__version__ = '9.9.0+cu130'\ncuda: str = '13.0'\n",
        "torch/nn/__init__.py": "raise SystemExit('it was imported')",
        "torch-9.9.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 9.9.0\n",
    }.items():
        path = packages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return executable


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """This Python as an installed window's: torch cannot be found in it."""
    find: Callable[..., object] = importlib.util.find_spec
    monkeypatch.setattr(
        module.importlib.util,
        "find_spec",
        lambda name, *rest: None if name.split(".")[0] == "torch" else find(name, *rest),
    )
    monkeypatch.delenv(VARIABLE, raising=False)


def choose(text: object) -> None:
    choice_file().parent.mkdir(parents=True, exist_ok=True)
    choice_file().write_text(json.dumps(text), encoding="utf-8")


def test_a_python_with_torch_trains_itself(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed here")
    monkeypatch.setenv(VARIABLE, str(environment))
    assert training_python() == own_python() == TrainingPython(Path(sys.executable))


@pytest.mark.usefixtures("without_torch")
def test_the_variable_comes_before_the_choice(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert training_python().packages is None, "nothing was named or chosen"
    choose({"format": FORMAT, "executable": str(environment)})
    assert training_python().executable == environment
    monkeypatch.setenv(VARIABLE, str(environment.with_name("gone")))
    monkeypatch.setattr(module, "package_folder", lambda _: None)
    assert training_python().packages is None


@pytest.mark.usefixtures("without_torch")
@pytest.mark.parametrize("text", [[], {"format": "other"}, {"format": FORMAT}, {"format": FORMAT, "executable": 3}])
def test_a_damaged_choice_is_none(text: object) -> None:
    choose(text)
    assert training_python().packages is None


@pytest.mark.usefixtures("without_torch")
def test_a_chosen_python_that_is_gone_or_relative_is_none(environment: Path) -> None:
    choose({"format": FORMAT, "executable": "python"})
    assert training_python().packages is None
    choose({"format": FORMAT, "executable": str(environment)})
    environment.unlink()
    assert training_python().packages is None


@pytest.mark.usefixtures("without_torch")
def test_packages_are_looked_for_where_training_happens(environment: Path) -> None:
    assert missing_packages(["torch", "torch.nn"]) == ("torch", "torch.nn")
    choose({"format": FORMAT, "executable": str(environment)})
    assert missing_packages(["torch", "torch.nn", "torch.absent", "numpy"]) == ("torch.absent", "numpy")
    assert installed_version("torch") == "9.9.0" and installed_version("numpy") is None
    assert installed_version("numpy", own_python()) is not None
    platform = this_platform()
    assert (platform.torch_version, platform.cuda_build) == ("9.9.0+cu130", "13.0")


@pytest.mark.usefixtures("without_torch")
def test_a_variable_that_names_no_python_is_told(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert why_variable_unused() == ""
    monkeypatch.setenv(VARIABLE, str(environment))
    assert why_variable_unused() == ""
    monkeypatch.setenv(VARIABLE, str(environment.parent / "absent.exe"))
    assert "absent.exe, which is not a Python with packages" in why_variable_unused()
    with pytest.raises(PreflightError, match=r"PyTorch is not installed. The variable RANKDECK_PYTHON names"):
        check_torch(this_platform())


def test_a_variable_that_is_not_needed_is_told(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(environment))
    assert why_variable_unused().endswith("because this Python has PyTorch itself.")
