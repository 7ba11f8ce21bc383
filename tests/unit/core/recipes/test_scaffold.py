"""`rankdeck recipes new`: what it makes is whole, usable and never in the way of what is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.cli import main
from core.errors import UsageError
from core.recipes import scaffold as module
from core.recipes.catalog import find_recipes, get_recipe, user_recipes_folder
from core.recipes.scaffold import MANIFEST, TRAIN, new_recipe

DOCS = Path(__file__).parents[4] / "docs" / "recipes.md"


def test_a_new_recipe_is_whole_and_found_by_its_name(runs_dir: Path) -> None:
    made = new_recipe("my-model")
    assert made == user_recipes_folder() / "my-model" == runs_dir / "recipes" / "my-model"
    recipe = get_recipe("my-model")
    assert (recipe.folder, recipe.problem, [spec.name for spec in recipe.fields]) == (made, "", ["width"])
    assert sorted(path.name for path in made.parent.iterdir()) == ["my-model"]
    assert len((made / "train.py").read_text(encoding="utf-8").splitlines()) <= 40
    compile(TRAIN, "train.py", "exec")


def test_the_docs_show_the_very_text() -> None:
    text = DOCS.read_text(encoding="utf-8")
    for shown in (TRAIN, MANIFEST.replace("NAME", "my-model")):
        assert f"\n{shown}```" in text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "cannot be a recipe's name"),
        ("My-Model", "cannot be a recipe's name"),
        ("2nd", "cannot be a recipe's name"),
        ("größe", "cannot be a recipe's name"),
        ("a b", "cannot be a recipe's name"),
        ("../up", "cannot be a recipe's name"),
        ("a/b", "cannot be a recipe's name"),
        ("a.b", "cannot be a recipe's name"),
        ("x" * 65, "cannot be a recipe's name"),
        ("con", "keeps the name 'con'"),
        ("nul", "keeps the name 'nul'"),
        ("com1", "keeps the name 'com1'"),
        ("lpt9", "keeps the name 'lpt9'"),
        ("minigpt", "is taken by the recipe in"),
    ],
)
def test_a_name_that_no_recipe_can_have(runs_dir: Path, name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        new_recipe(name)
    assert caught.value.next_step and caught.value.exit_code == 2
    assert not (runs_dir / "recipes").exists()


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="is there already"):
        new_recipe("mine", tmp_path)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_a_disk_that_refuses_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(Exception, match="could not be made"):
        new_recipe("mine", tmp_path / "file")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "no")

    monkeypatch.setattr(module, "replace_with_retry", refuse)
    with pytest.raises(Exception, match="permission was denied"):
        new_recipe("mine", tmp_path / "folder")
    assert list((tmp_path / "folder").iterdir()) == []


def test_on_the_command_line(tmp_path: Path, runs_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", "new", "mine"]) == 0
    out = capsys.readouterr().out
    assert str(runs_dir / "recipes" / "mine") in out and "rankdeck train --recipe mine" in out
    assert main(["recipes", "new", "other", "--folder", str(tmp_path / "here"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "other", "folder": str(tmp_path / "here" / "other")}
    assert main(["recipes"]) == 0
    assert "mine" in capsys.readouterr().out
    for words in (["new"], ["new", "mine"], ["new", "CON"], ["old", "x"], ["--folder", "x"]):
        assert main(["recipes", *words]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 3


def test_code_without_a_manifest_is_listed_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKDECK_RECIPES", str(tmp_path))
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "train.py").write_text("", encoding="utf-8")
    (tmp_path / "no recipe at all").mkdir()
    assert [r.problem for r in find_recipes() if r.folder.parent == tmp_path] == [
        "It has a train.py and no recipe.toml."
    ]
