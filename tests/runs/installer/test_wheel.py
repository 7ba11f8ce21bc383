"""The wheel adds one name to a Python's packages, `rankdeck`, and the command works from it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="it builds the wheel")
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel with spaces")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=100)
    (wheel,) = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "packages")
    return folder / "packages"


def run(installed: Path, *arguments: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(installed), "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], env=env, cwd=installed, check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_wheel_adds_one_name(installed: Path) -> None:
    assert {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")} == {"rankdeck"}
    text = "import rankdeck; rankdeck.log(step=1, loss=1.0)\nfor name in ('app', 'core', 'workers', 'resources'):"
    text += "\n  try: __import__(name); print(name)\n  except ImportError: pass"
    assert run(installed, "-S", "-c", text) == ""  # without a site, this Python has no packages but those of the wheel


def test_the_command_finds_its_own_packages(installed: Path) -> None:
    assert "minigpt" in run(installed, "-m", "rankdeck", "recipes")
    where = (
        "import rankdeck.__main__ as m, sys; sys.argv[1:] = ['recipes']; m.main(); import core; print(core.__file__)"
    )
    assert str(installed / "rankdeck" / "_internal") in run(installed, "-c", where)


def test_the_documentation_comes_with_the_wheel(installed: Path) -> None:
    text = "from rankdeck._internal.app.preferences.documentation import DOCS; print(DOCS)"
    where = run(installed, "-c", text).strip()
    many = len([*Path(where).glob("*.md"), *Path(where).glob("guides/*.md")])
    assert Path(where) == installed / "rankdeck" / "_internal" / "docs"
    assert many == len([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guides").glob("*.md")])
    assert (Path(where) / "../resources/screenshots/zero.png").is_file(), "a picture that a page shows"
