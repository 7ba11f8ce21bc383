"""Which program the recipe `script` means; lines of words with quotes and backslashes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.config.arguments import join_arguments, split_arguments
from core.errors import ConfigError
from core.recipes.user_script import read_script, with_absolute_places


@pytest.fixture
def script(tmp_path: Path) -> Path:
    folder = tmp_path / "mein Projekt"
    folder.mkdir()
    path = folder / "train.py"
    path.write_text("print(1)\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("  --lr 3e-4\t--name x ", ["--lr", "3e-4", "--name", "x"]),
        (r"--data C:\new\table D:\x", ["--data", r"C:\new\table", r"D:\x"]),
        (r'"C:\My Data\\" next', ["C:\\My Data\\", "next"]),
        ("--name='a b' 'c d' \"e f\"", ["--name=a b", "c d", "e f"]),
        ("don't it's", ["don't", "it's"]),
        (r"say \"hi\"", ["say", '"hi"']),
        ('""', [""]),
    ],
)
def test_words_of_a_line(line: str, words: list[str]) -> None:
    assert split_arguments(line) == words


@pytest.mark.parametrize("line", ['"open', "--x='open", 'a"b'])
def test_a_quote_that_is_never_closed_is_named(line: str) -> None:
    with pytest.raises(ConfigError, match="never closed"):
        split_arguments(line)


def test_any_words_come_back_from_their_line() -> None:
    hypothesis = pytest.importorskip("hypothesis")
    strategies = hypothesis.strategies
    letters = strategies.sampled_from([*"ab= \t'\"\\-", "ü", "\n"])

    @hypothesis.settings(max_examples=400, deadline=None)
    @hypothesis.given(strategies.lists(strategies.text(letters, max_size=8), max_size=6))
    def check(words: list[str]) -> None:
        assert split_arguments(join_arguments(words)) == words

    check()


def test_a_script_as_it_will_run(script: Path) -> None:
    told = read_script(
        {
            "script": str(script),
            "arguments": "--lr 3 'a b'",
            "charts": "acc1=accuracy, foo=-",
        },
        {"A": "1", "B": "x y"},
    )
    assert told.argv == (sys.executable, str(script), "--lr", "3", "a b")
    assert (told.folder, told.name) == (script.parent, "train.py")
    assert told.environment == {"A": "1", "B": "x y"}
    assert told.charts == {"acc1": "accuracy", "foo": "-"}


def test_a_module_runs_where_the_person_stands(tmp_path: Path) -> None:
    options = with_absolute_places({"module": "pkg.train"}, [tmp_path])
    told = read_script(options)
    assert (told.target, told.folder, told.name) == (("-m", "pkg.train"), tmp_path, "pkg.train")


def test_places_are_made_absolute(script: Path, tmp_path: Path) -> None:
    options = with_absolute_places({"script": "mein Projekt/train.py", "python": "python3"}, [tmp_path])
    assert options == {"script": str(script), "python": "python3"}
    beside = with_absolute_places({"script": "train.py"}, [tmp_path, script.parent])
    assert beside["script"] == str(script)


@pytest.mark.parametrize(
    ("options", "field", "words"),
    [
        ({}, "script", "No script"),
        ({"script": "SCRIPT", "module": "m"}, "script", "Both"),
        ({"script": "/nowhere/train.py"}, "script", "no file"),
        ({"script": "FOLDER"}, "script", "folder"),
        ({"module": "not a module"}, "module", "not a module name"),
        ({"script": "SCRIPT", "python": "/nowhere/python"}, "python", "no interpreter"),
        ({"script": "SCRIPT", "working_directory": "/nowhere"}, "working_directory", "no folder"),
        ({"script": "SCRIPT", "arguments": '"'}, "arguments", "never closed"),
        ({"script": "SCRIPT", "charts": "loss"}, "charts", "NAME=CHART"),
    ],
)
def test_what_cannot_be_is_named(script: Path, options: dict[str, str], field: str, words: str) -> None:
    real = {"SCRIPT": str(script), "FOLDER": str(script.parent)}
    with pytest.raises(ConfigError, match=words) as caught:
        read_script({name: real.get(value, value) for name, value in options.items()})
    assert caught.value.field == field
