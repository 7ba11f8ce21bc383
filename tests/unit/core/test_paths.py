"""Where Rankdeck keeps what it makes, and where it lies itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core import paths

pytestmark = pytest.mark.windows


@pytest.mark.parametrize("home", ["", "   "])
def test_without_a_home_runs_lie_in_the_persons_data_folder(
    home: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert paths.data_folder().name.lower() == "rankdeck" and paths.data_folder().is_absolute()
    monkeypatch.setenv("RANKDECK_HOME", home)
    monkeypatch.setattr(paths, "data_folder", lambda: tmp_path / "own")
    assert paths.default_runs_dir() == tmp_path / "own" / "runs"
    assert paths.runs_dir_of_environment() is None


def test_a_chosen_folder_is_the_default_unless_the_variable_sets_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(paths, "data_folder", lambda: tmp_path / "own")
    monkeypatch.delenv("RANKDECK_HOME", raising=False)
    paths.runs_dir_file().parent.mkdir()
    paths.runs_dir_file().write_text(f"{tmp_path / 'Läufe'}\n", encoding="utf-8")
    assert paths.default_runs_dir() == tmp_path / "Läufe"
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path / "other"))
    assert paths.default_runs_dir() == paths.runs_dir_of_environment() == tmp_path / "other"
    monkeypatch.delenv("RANKDECK_HOME")
    paths.runs_dir_file().write_text("not/absolute", encoding="utf-8")
    assert paths.default_runs_dir() == tmp_path / "own" / "runs"


def test_a_home_is_absolute_and_holds_the_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKDECK_HOME", " some runs ")
    assert paths.default_runs_dir() == tmp_path / "some runs"
    assert paths.token_cache_dir() == tmp_path / "some runs" / "cache" / "tokens"
    monkeypatch.setenv("RANKDECK_HOME", "~/runs")
    assert paths.default_runs_dir() == Path.home() / "runs"


def test_the_programs_own_folders_hold_what_they_are_named_for() -> None:
    assert (paths.PACKAGE_FOLDER / "core" / "paths.py").samefile(paths.__file__)
    assert [path.name for path in paths.SDK_FOLDER.iterdir() if path.is_dir() and path.name != "__pycache__"] == [
        "rankdeck"
    ]


# Windows has no list of people to ask: there it is a folder beside one's own, whoever's.
NOBODYS = f"{Path.home().parent}/nobody-of-this-name/a" if sys.platform == "win32" else "~nobody-of-this-name/a"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('"a b"', "a b"),
        (" 'a b' ", "a b"),
        ("„a b“", "a b"),
        ("\u202aa b", "a b"),
        ("file:///C:/My%20data/a.txt", "C:/My data/a.txt"),
        ("file://localhost/a%20b", "/a b"),
        ("file://server/share/a", "//server/share/a"),
        ("file:/a/b", "/a/b"),
        ("~/a", str(Path.home() / "a")),
        ("~nobody-of-this-name/a", NOBODYS),
        ("$A_FOLDER/a", "here/a"),
        ("a'b", "a'b"),
        ("$NOT_SET/a", "$NOT_SET/a"),
    ],
)
def test_a_path_is_taken_as_it_is_typed(text: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_FOLDER", "here")
    assert paths.typed_path(text) == Path(path)
