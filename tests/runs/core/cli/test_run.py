"""`rankdeck run`: torchrun's words, and what they come to."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from core.cli.parser import parse
from core.cli.train import train_argv
from core.errors import UsageError
from core.launch.command_line import request_from_arguments
from core.recipes.user_script import UserScript, read_script

pytestmark = pytest.mark.windows


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a script, which is where the person stands."""
    place = tmp_path / "mein Projekt"
    place.mkdir()
    (place / "train.py").write_text("import sys\nprint('step 1 loss 0.5', sys.argv[1:])\n", encoding="utf-8")
    monkeypatch.chdir(place)
    return place


def told(*words: str) -> tuple[UserScript, object]:
    request = request_from_arguments(parse(train_argv(parse(["run", *words]), Path.cwd())))
    return read_script(request.config.options, request.config.env), request.config


def test_what_follows_the_script_is_the_scripts(folder: Path) -> None:
    script, config = told(
        "--devices", "cpu:2", "--restarts", "3", "train.py", "--devices", "x", "-m", "a b", "--", "C:\\d\\", "it's"
    )  # fmt: skip
    assert script.target == (str(folder / "train.py"),)
    assert script.arguments == ("--devices", "x", "-m", "a b", "--", "C:\\d\\", "it's")
    assert script.folder == folder
    assert (config.devices, config.max_restarts, config.recipe) == (("cpu:2",), 3, "script")  # type: ignore[attr-defined]


def test_a_module_and_its_arguments(folder: Path) -> None:
    script, _ = told("-m", "pkg.train", "--", "--epochs", "3")
    assert (script.target, script.arguments, script.folder) == (("-m", "pkg.train"), ("--epochs", "3"), folder)


def test_everything_else_can_be_said(folder: Path, tmp_path: Path) -> None:
    script, _ = told(
        "--python", sys.executable, "--cwd", str(tmp_path), "--env", "A=x y", "--env", "B=1", "--map", "acc1=accuracy",
        "--no-torchrun", "--stop-signal", "terminate", "--stop-deadline-s", "5", str(folder / "train.py"),
    )  # fmt: skip
    assert (script.python, script.folder, script.environment) == (sys.executable, tmp_path, {"A": "x y", "B": "1"})
    assert (script.charts, script.plain, script.stop_signal) == ({"acc1": "accuracy"}, True, "terminate")
    assert script.stop_deadline_s == 5


@pytest.mark.parametrize("words", [["run"], ["run", "--devices", "cpu:2"], ["run", "--"]])
def test_without_a_script_there_is_nothing_to_run(folder: Path, words: list[str]) -> None:
    with pytest.raises(UsageError, match="No script"):
        train_argv(parse(words), folder)


@pytest.mark.usefixtures("folder")
def test_a_script_that_is_not_there_starts_nothing(runs_dir: Path) -> None:
    done = command("run", "--devices", "cpu:0", "trian.py")
    assert done.returncode == 2 and "There is no file" in done.stderr and list(runs_dir.iterdir()) == []


@pytest.mark.usefixtures("folder")
def test_it_runs_and_says_so(runs_dir: Path) -> None:
    done = command("run", "--devices", "cpu:0", "--json", "train.py", "a b")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    steps = [line for line in lines if line["event"] == "step"]
    assert [(line["step"], line["loss"]) for line in steps] == [(1, 0.5)]
    assert len(list(runs_dir.glob("*/run.toml"))) == 1


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """`rankdeck` in a process of its own, where the person stands."""
    root = Path(__file__).resolve().parents[4]
    text = f"import sys; sys.path.insert(0, {str(root)!r}); from core.cli.entry import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", text, *words], capture_output=True, text=True, encoding="utf-8", timeout=60, check=False
    )
