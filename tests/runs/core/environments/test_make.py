"""An environment made by a real Python and pip from a folder of small wheels; stopped and killed on the way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from core.environments import make as module
from core.environments.downloads import CancelledError
from core.environments.make import Progress, make
from core.environments.plan import Wanted
from core.environments.programs import LOG, EnvironmentFailedError
from core.environments.record import Environment, executable_in, read_environment
from core.errors import PreflightError, UsageError
from core.machine.torch_builds import TorchSource
from tests.helpers.small_wheels import TORCH, make_wheel

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with pip, made once: that takes longest."""
    folder = tmp_path_factory.mktemp("bare")
    return module._make_python(folder, lambda: False).parents[1]


def with_python(wanted: Wanted, bare_python: Path) -> Wanted:
    shutil.copytree(bare_python, wanted.folder / "python", symlinks=True)
    return wanted


@pytest.fixture
def wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wanted:
    """A small PyTorch, which needs a package of its own, and one more."""
    monkeypatch.setattr(
        module, "CHECK", ("-c", "import json, torch, small, other; print(json.dumps({'torch': torch.__version__}))")
    )
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)  # a machine's own constraints would have a say
    wheels = tmp_path / "my wheels"
    wheels.mkdir()
    make_wheel(wheels, "torch", "2.13.0", TORCH, "small>=1")
    make_wheel(wheels, "small", "1.5", "")
    make_wheel(wheels, "other", "2.0", "")
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("small==1.5\ntorch==2.13.0\n", encoding="utf-8")
    missing = TorchSource("torch==2.13.0+cu130", None, "a build that is not there")
    torch = (missing, TorchSource("torch==2.13.0", None, "torch 2.13.0"))
    return Wanted(tmp_path / "environments" / "mine", torch, ("torch>=2.7", "other"), (), wheels, constraints)


def made(wanted: Wanted) -> tuple[Environment, list[Progress]]:
    told: list[Progress] = []
    return make(wanted, told.append, lambda: False), told


@pytest.mark.windows
def test_it_is_made_tested_and_complete(wanted: Wanted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/not/ours")
    monkeypatch.setenv("PYTHONHOME", "/not/ours")
    monkeypatch.setenv("PIP_TARGET", "/nowhere")
    environment, told = made(wanted)
    assert environment == read_environment(wanted.folder)
    assert (environment.record.state, environment.record.torch) == ("ready", "2.13.0")
    steps = list(dict.fromkeys(progress.doing for progress in told))
    assert steps == [
        "Copying Python", "Looking for a build that is not there", "Looking for torch 2.13.0",
        "Looking for the other packages", "Asking for sizes", "Downloading", "Installing 3 packages", "Testing it",
    ]  # fmt: skip
    assert any(progress.done == progress.total > 0 for progress in told)
    assert not (wanted.folder / "downloads").exists()
    program = "import other, small, sys, torch; print(sys.prefix)"
    answer = subprocess.run(
        [executable_in(wanted.folder), "-I", "-c", program], capture_output=True, text=True, check=True
    )
    assert Path(answer.stdout.strip()).resolve() == (wanted.folder / "python").resolve()
    with pytest.raises(UsageError, match="is there already"):
        made(wanted)


def test_one_that_fails_its_test_is_not_complete_and_can_be_mended(wanted: Wanted, bare_python: Path) -> None:
    with_python(wanted, bare_python)
    assert wanted.wheels is not None
    make_wheel(wanted.wheels, "other", "2.0", "raise ImportError('a DLL is missing')")
    with pytest.raises(EnvironmentFailedError, match=r"self-test failed .*a DLL is missing") as failed:
        made(wanted)
    assert str(wanted.folder / LOG) in failed.value.next_step
    environment = read_environment(wanted.folder)
    assert environment is not None and environment.record.state == "making"
    make_wheel(wanted.wheels, "other", "2.1", "")
    (wanted.wheels / "other-2.0-py3-none-any.whl").unlink()
    wanted = replace(wanted, requirements=("torch>=2.7", "other>=2.1"))
    assert made(wanted)[0].record.state == "ready"


@pytest.mark.parametrize("missing", ["torch==2.13.0", "small==1.5", "other"])
def test_what_a_folder_of_wheels_lacks_is_named(missing: str, wanted: Wanted, bare_python: Path) -> None:
    with_python(wanted, bare_python)
    assert wanted.wheels is not None
    for wheel in wanted.wheels.glob(f"{missing.partition('=')[0]}-*.whl"):
        wheel.unlink()
    with pytest.raises(EnvironmentFailedError) as failed:
        made(wanted)
    assert failed.value.cause == f"{wanted.wheels} has no wheel of {missing} for this Python and platform."
    assert failed.value.next_step.startswith("Copy it into that folder")


@pytest.mark.windows
def test_without_room_nothing_is_installed(wanted: Wanted, bare_python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_python(wanted, bare_python)
    monkeypatch.setattr(module, "RESERVE", 1 << 60)
    with pytest.raises(PreflightError, match="are free") as refused:
        made(wanted)
    assert refused.value.title == "Not enough disk space"
    answer = subprocess.run(
        [executable_in(wanted.folder), "-I", "-c", "import torch"], capture_output=True, check=False
    )
    assert answer.returncode != 0


@pytest.mark.parametrize("step", ["Looking for torch", "Downloading", "Testing it"])
def test_it_is_stopped_in_a_step_and_completed_later(step: str, wanted: Wanted, bare_python: Path) -> None:
    with_python(wanted, bare_python)
    stopped: list[bool] = []

    def told(progress: Progress) -> None:
        if progress.doing.startswith(step):
            stopped.append(True)

    with pytest.raises(CancelledError):
        make(wanted, told, lambda: bool(stopped))
    environment = read_environment(wanted.folder)
    assert environment is not None and environment.record.state == "making"
    assert not _processes_in(wanted.folder)
    assert made(wanted)[0].record.state == "ready"


PROGRAM = """
import json, sys
from pathlib import Path
from core.environments import make as module
from core.environments.plan import Wanted
from core.machine.torch_builds import TorchSource
from tests.helpers.small_wheels import TORCH, make_wheel

values = json.loads(sys.argv[1])
module.CHECK = ("-c", "import json, torch, small, other; print(json.dumps({'torch': torch.__version__}))")
torch = (TorchSource("torch==2.13.0", None, "torch"),)
folder, wheels, constraints = (Path(values[name]) for name in ("folder", "wheels", "constraints"))
wanted = Wanted(folder, torch, tuple(values["requirements"]), (), wheels, constraints)
module.make(wanted, lambda _: None, lambda: False)
"""


@pytest.mark.timeout(400)  # two environments, one after the other, take minutes under Wine
@pytest.mark.parametrize("seconds", [0.5, 3.0])
def test_it_is_killed_at_any_moment_and_completed_later(seconds: float, wanted: Wanted, tmp_path: Path) -> None:
    request = {
        "folder": str(wanted.folder), "wheels": str(wanted.wheels), "constraints": str(wanted.constraints),
        "requirements": wanted.requirements,
    }  # fmt: skip
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    root = Path(__file__).resolve().parents[4]
    process = subprocess.Popen(
        [sys.executable, program, json.dumps(request)], env={**os.environ, "PYTHONPATH": str(root)}
    )
    time.sleep(seconds)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while _processes_in(wanted.folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _processes_in(wanted.folder), "what it started ended with it"
    environment = read_environment(wanted.folder)
    if environment is None or environment.record.state == "making":
        assert made(wanted)[0].record.state == "ready"


def _processes_in(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if process.pid != os.getpid() and any(str(folder) in word for word in words[:1]):
            found.append(process)
    return found
