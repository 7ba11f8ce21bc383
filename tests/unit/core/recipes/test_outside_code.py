"""Code that a run's folder names: it is named, asked about, and runs only when the person agrees."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from unittest.mock import Mock, patch

import pytest

from core import client
from core.cli import main
from core.cli.parser import parse
from core.config.config_file import to_toml
from core.config.run_config import RunConfig
from core.errors import UsageError
from core.export.export import export_run
from core.launch.command_line import request_from_arguments
from core.machines.machine import Machine
from core.machines.machine_list import keep_machine
from core.processes.ask import Answer
from core.recipes.outside_code import OutsideCodeError, known_code_file, outside_code
from core.resume.planner import plan_resume
from core.run_folder.store import RunStore
from tests.helpers.made_runs import TEXT, make_run

MANIFEST = """format = "rankdeck-recipe"
version = 1
name = "theirs"
title = "Theirs"
check = "check.py"
exports = ["hf"]
"""
CHECK = """import json, pathlib
pathlib.Path(__file__).with_name("ran").touch()
print(json.dumps({"notes": []}))
"""


@pytest.fixture
def no_host(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    started: list[Path] = []
    monkeypatch.setattr(client, "_spawn_host", lambda store, *_: started.append(store.dir))
    monkeypatch.setattr("core.cli.train._follow", lambda *_: 0)
    return started


@pytest.fixture
def place(tmp_path: Path, runs_dir: Path) -> Path:
    (tmp_path / "text.txt").write_bytes(TEXT)
    runs_dir.mkdir(exist_ok=True)
    return tmp_path


def add_recipe(folder: Path) -> Path:
    recipe = folder / "theirs"
    recipe.mkdir(parents=True)
    (recipe / "recipe.toml").write_text(MANIFEST, encoding="utf-8")
    (recipe / "train.py").write_text("raise SystemExit\n", encoding="utf-8")
    (recipe / "check.py").write_text(CHECK, encoding="utf-8")
    return recipe.resolve()


def test_a_recipe_by_its_path_is_named_and_refused_until_agreed_to(
    place: Path, runs_dir: Path, no_host: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = add_recipe(place / "elsewhere")
    store = make_run(place, runs_dir=runs_dir, recipe=str(recipe), options={})
    assert main(["resume", store.dir.name, "--dry-run"]) == 0
    assert f"This run uses the recipe code in {recipe}. It runs with your permissions." in capsys.readouterr().out
    assert main(["resume", store.dir.name]) == 2, "nobody can be asked here"
    title, cause, next_step = capsys.readouterr().err.splitlines()
    assert title == "This run was not started here"
    assert str(recipe) in cause and "--yes" in next_step
    assert not (recipe / "ran").exists() and no_host == [], "its check is code, too"
    assert main(["resume", store.dir.name, "--yes"]) == 0
    assert (recipe / "ran").exists() and no_host == [store.dir]
    capsys.readouterr()
    store.write_state(store.stored_state().replace(state="stopped"))
    assert main(["resume", store.dir.name]) == 0, "it was agreed to once"
    assert known_code_file().is_file()


def test_a_person_at_a_terminal_is_asked(
    place: Path, runs_dir: Path, no_host: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = add_recipe(place / "elsewhere")
    store = make_run(place, runs_dir=runs_dir, recipe=str(recipe), options={})
    asked = []

    def answer(says: bool) -> None:
        monkeypatch.setattr("core.cli.terminal.Terminal.ask", lambda _self, text: asked.append(text) or says)

    answer(False)
    assert main(["resume", store.dir.name]) == 2 and no_host == []
    answer(True)
    assert main(["resume", store.dir.name]) == 0 and no_host == [store.dir]
    assert "Run it?" in asked[0]


def test_a_recipe_from_inside_a_run_folder_needs_the_flag(
    place: Path, runs_dir: Path, no_host: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    store = make_run(place, runs_dir=runs_dir)
    recipe = add_recipe(store.dir)
    text = store.run_toml.read_text(encoding="utf-8").partition("[options]")[0]
    text = text.replace('recipe = "minigpt"', f"recipe = '{recipe}'")
    store.run_toml.write_text(text, encoding="utf-8", newline="\n")
    keep_machine(Machine("box", "nobody@127.0.0.1", port=1))
    for words in ([], ["--yes"], ["--machine", "box"], ["--machine", "box", "--yes"]):
        assert main(["resume", store.dir.name, *words]) == 2
        assert "--trust-recipe" in capsys.readouterr().err
    assert not (recipe / "ran").exists()
    if shutil.which("ssh") is not None:
        assert main(["resume", store.dir.name, "--machine", "box", "--trust-recipe"]) == 1, "it cannot be reached"
    assert main(["resume", store.dir.name, "--trust-recipe"]) == 0
    assert no_host == [store.dir]


@pytest.mark.usefixtures("no_host")
def test_what_this_person_started_here_is_not_asked_about(place: Path, runs_dir: Path) -> None:
    recipe = add_recipe(place / "mine")
    store = make_run(place, runs_dir=runs_dir, recipe=str(recipe), options={})
    config = store.config()
    assert not plan_resume(str(store.dir), runs_dir).code_accepted
    client.start_run(config, runs_dir)
    plan = plan_resume(str(store.dir), runs_dir)
    assert plan.code is not None and plan.code_accepted
    known_code_file().write_text("{", encoding="utf-8")
    assert not plan_resume(str(store.dir), runs_dir).code_accepted, "a damaged note is none"


def test_built_in_recipes_and_the_persons_own_are_no_question(place: Path, runs_dir: Path) -> None:
    assert outside_code(RunConfig()) is None
    recipe = add_recipe(runs_dir / "recipes")
    assert outside_code(RunConfig(recipe="theirs")) is None
    assert outside_code(RunConfig(recipe=str(recipe))) is None
    moved = shutil.move(recipe, place / "theirs")
    assert outside_code(RunConfig(recipe=str(moved))) is not None


def test_a_program_is_named_with_its_interpreter_and_its_arguments_count(
    place: Path, runs_dir: Path, no_host: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    script = place / "train.py"
    script.write_text("print('step 1 loss 2')\n", encoding="utf-8")
    options = {"script": str(script), "python": sys.executable, "arguments": "--lr 1"}
    config = RunConfig(recipe="script", options=options, devices=("cpu:1",), dataset_file="none://")
    store = client.start_run(config, runs_dir)
    store.write_state(store.stored_state().replace(state="stopped"))
    assert main(["resume", store.dir.name]) == 0
    assert f"starts the program {script} with {sys.executable}" in capsys.readouterr().out
    text = store.run_toml.read_text(encoding="utf-8").replace("--lr 1", "--lr 2")
    store.run_toml.write_text(text, encoding="utf-8", newline="\n")
    store.write_state(store.stored_state().replace(state="stopped"))
    no_host.clear()
    assert main(["resume", store.dir.name]) == 2
    assert no_host == []


def test_no_door_of_the_client_takes_a_plan_that_was_not_agreed_to(place: Path, runs_dir: Path) -> None:
    recipe = add_recipe(place / "elsewhere")
    store = make_run(place, runs_dir=runs_dir, recipe=str(recipe), options={})
    with pytest.raises(OutsideCodeError):
        client.resume_run(plan_resume(str(store.dir), runs_dir))


def test_exporting_by_a_recipe_is_running_it(
    place: Path, runs_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_export = Mock()
    monkeypatch.setattr("core.export.export.run_export", run_export)
    recipe = add_recipe(place / "elsewhere")
    store = make_run(place, runs_dir=runs_dir, recipe=str(recipe), options={})
    assert main(["export", store.dir.name, "--to", "hf"]) == 2
    err = capsys.readouterr().err
    assert "This run was not started here" in err and "--trust-recipe" in err
    assert run_export.call_count == 0
    export_run(store, "hf", trust_recipe=True)
    assert run_export.call_args.args[1].folder == recipe


INSIDE, OUTSIDE = "{run}/lib", "{place}/lib"
ATTACKS = {
    "a library": ({"env": {"LD_PRELOAD": f"{OUTSIDE}/evil.so"}}, f"LD_PRELOAD={OUTSIDE}/evil.so", "--yes"),
    "modules of its own": ({"env": {"PYTHONPATH": INSIDE}}, f"PYTHONPATH={INSIDE}", "--trust-recipe"),
    "modules between others": (
        {"env": {"PYTHONPATH": f"{OUTSIDE}{os.pathsep}{INSIDE}"}}, "PYTHONPATH=", "--trust-recipe"
    ),
    "a start-up file": ({"env": {"PYTHONSTARTUP": f"{INSIDE}/x.py"}}, "PYTHONSTARTUP=", "--trust-recipe"),
    "programs": ({"env": {"PATH": INSIDE}}, f"PATH={INSIDE}", "--trust-recipe"),
    "modules of where it stands": ({"env": {"PYTHONPATH": "."}}, "PYTHONPATH=.", "--yes"),
    "a password": ({"env": {"SOME_TOKEN": "hunter2"}}, "SOME_TOKEN=…", "--yes"),
    "a file to append to": ({"log_file": f"{OUTSIDE}/.bashrc"}, f"appended to {OUTSIDE}/.bashrc", "--yes"),
    "DeepSpeed's own files": ({"deepspeed_config": "{{}}"}, "DeepSpeed reads settings", "--yes"),
}  # fmt: skip


def filled(value: object, **places: object) -> object:
    """`value` with the folders of this test in it."""
    if isinstance(value, dict):
        return {name: filled(item, **places) for name, item in value.items()}
    return str(value).format(**places)


@pytest.mark.parametrize("attack", ATTACKS)
def test_settings_of_a_received_run_count_as_code(
    place: Path, runs_dir: Path, no_host: list[Path], capsys: pytest.CaptureFixture[str], attack: str
) -> None:
    settings, named, flag = ATTACKS[attack]
    recipe = add_recipe(runs_dir / "recipes")  # the person's own: what it names is all that can be asked about
    store = make_run(place, runs_dir=runs_dir, recipe=str(recipe), options={})
    ran = place / "ran"
    (store.dir / "lib").mkdir()
    (store.dir / "lib" / "sitecustomize.py").write_text(f"open({str(ran)!r}, 'w').close()\n", encoding="utf-8")
    places = {"run": store.dir, "place": place}
    store.run_toml.write_text(to_toml(store.config().replace(**filled(settings, **places))), encoding="utf-8")
    assert main(["resume", store.dir.name, "--dry-run"]) == 0
    out = capsys.readouterr().out
    # A path is shown as the system writes it.
    assert str(filled(named, **places)).replace("/", os.sep) in out.replace("/", os.sep) and "hunter2" not in out
    assert "Nothing of it runs until you agree" in out
    refused = [[], ["--yes"]] if flag == "--trust-recipe" else [[]]
    for words in refused:
        assert main(["resume", store.dir.name, *words]) == 2
        assert flag in capsys.readouterr().err
    if "log_file" not in settings and "deepspeed_config" not in settings:
        assert main(["export", store.dir.name, "--to", "hf"]) == 2, "that runs the recipe with the same variables"
    assert not ran.exists() and no_host == []
    with pytest.raises(UsageError, match="not started"):
        main_config(store)
    accepts = Answer({"notes": [], "settings": {}}, "", "exited normally", in_time=True, code=0)
    with patch("core.recipes.check.ask_program", return_value=accepts):  # it may run now, and that takes long
        assert main(["resume", store.dir.name, flag]) == 0 and no_host == [store.dir]
    store.write_state(store.stored_state().replace(state="stopped"))
    assert plan_resume(str(store.dir), runs_dir).code_accepted, "once"
    assert main_config(store).env == store.config().env


@pytest.mark.parametrize("text", ["../lib/.bashrc", "~/.bashrc", "a//b.jsonl", "lib/../c.jsonl"])
def test_a_received_file_hides_nothing_behind_how_it_writes_a_path(place: Path, runs_dir: Path, text: str) -> None:
    store = make_run(place, runs_dir=runs_dir)
    store.run_toml.write_text(to_toml(store.config().replace(log_file=text)), encoding="utf-8")
    with pytest.raises(UsageError, match="not started"):
        main_config(store)


def test_other_arguments_make_a_received_program_no_own_one(place: Path, runs_dir: Path) -> None:
    (place / "train.py").write_text("", encoding="utf-8")
    store = make_run(place, runs_dir=runs_dir)
    config = store.config().replace(
        recipe="script", options={"script": str(place / "train.py")}, dataset_file="none://"
    )
    store.run_toml.write_text(to_toml(config), encoding="utf-8")
    for flags in ([], ["--set", "arguments=--lr 1"]):
        with pytest.raises(UsageError, match="not started"):
            request_from_arguments(parse(["train", "--config", str(store.run_toml), *flags]))
    own = place / "own.py"
    own.write_text("", encoding="utf-8")
    asked = request_from_arguments(parse(["train", "--config", str(store.run_toml), "--set", f"script={own}"]))
    assert asked.config.options["script"] == str(own)


def main_config(store: RunStore) -> RunConfig:
    """What ``rankdeck train --config`` makes of the run's settings."""
    return request_from_arguments(parse(["train", "--config", str(store.run_toml)])).config


@pytest.mark.usefixtures("no_host")
def test_settings_of_ones_own_are_asked_about_nowhere(place: Path, runs_dir: Path) -> None:
    config = make_run(place, runs_dir=place / "else").config().replace(env={"A": "1"}, log_file=str(place / "copy"))
    store = client.start_run(config, runs_dir)
    store.write_state(store.stored_state().replace(state="stopped"))
    assert plan_resume(str(store.dir), runs_dir).code_accepted
    moved = shutil.copytree(store.dir, place / "another drive" / "moved")
    assert plan_resume(str(moved), runs_dir).code_accepted, "what is known is what it says, not where it is"
    assert plan_resume(str(moved), runs_dir, {"env": "B=2"}).code_accepted, "a variable that was just given"
    (moved / "known-code.json").write_bytes(known_code_file().read_bytes())
    known_code_file().unlink()
    (runs_dir / "known-code.json").write_bytes((moved / "known-code.json").read_bytes())
    assert not plan_resume(str(store.dir), runs_dir).code_accepted, "no folder of runs brings its own record"
