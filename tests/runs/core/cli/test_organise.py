"""`rankdeck rename`, `note`, `tag`, `rm` and `find` on real run folders."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from core.cli import main
from core.run_folder.notes import RunNotes, read_notes
from core.run_folder.store import RunStore
from tests.helpers.made_runs import TEXT, make_run

pytestmark = pytest.mark.windows


@pytest.fixture
def store(tmp_path: Path, runs_dir: Path) -> RunStore:
    (tmp_path / "text.txt").write_bytes(TEXT)
    return make_run(tmp_path, runs_dir=runs_dir)


def test_a_named_run_is_found_by_its_name_everywhere(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rename", store.dir.name, "the", "good", "one"]) == 0
    assert "'the good one'" in capsys.readouterr().out
    for command in (["runs"], ["show", "the good one"], ["find", "good"]):
        assert main(command) == 0
        out = capsys.readouterr().out
        assert "the good one" in out and store.dir.name in out, command
    assert main(["rename", "the good one", ""]) == 0
    assert read_notes(store.dir) == RunNotes()


def test_notes_and_tags(store: RunStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run = store.dir.name
    assert main(["note", run, "first", "try"]) == 0
    assert main(["note", run]) == 0
    assert capsys.readouterr().out.endswith("first try\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO("two\nlines\n"))
    assert main(["note", run, "-"]) == 0
    assert main(["tag", run, "night", "Draft"]) == 0
    assert main(["tag", run, "--remove", "draft"]) == 0
    capsys.readouterr()
    assert main(["tag", run]) == 0
    assert capsys.readouterr().out == "night\n"
    assert read_notes(store.dir) == RunNotes(note="two\nlines", tags=("night",))
    assert main(["tag", run, "two words"]) == 2
    assert "not a tag" in capsys.readouterr().err
    assert main(["runs", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["run_id"], listed["notes"]["tags"]) == (run, ["night"])


def test_find_compares_settings_and_says_what_no_run_has(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    lr = store.config().lr
    assert main(["find", f"lr>={lr}", "state:stopped", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["run_id"] == store.dir.name
    assert main(["find", f"lr<{lr}"]) == 0
    assert "No run in" in capsys.readouterr().out
    assert main(["find", "learnig_rate>1"]) == 0
    assert "a value named learnig_rate" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the bin of the person who runs the tests is used")
def test_rm_moves_to_the_recycle_bin(store: RunStore, recycle_bin: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = store.dir.name
    with store.lock():
        assert main(["rm", run]) == 2
        assert f"rankdeck stop {run}" in capsys.readouterr().err
    assert main(["rm", run]) == 0
    assert f"{run} is in the recycle bin." in capsys.readouterr().out and (recycle_bin / "files" / run).is_dir()
    assert main(["runs"]) == 0
    assert "no runs yet" in capsys.readouterr().out


def test_nothing_is_removed_when_one_of_several_is_running(
    store: RunStore, tmp_path: Path, runs_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = make_run(tmp_path, runs_dir=runs_dir)
    with other.lock():
        assert main(["rm", store.dir.name, other.dir.name]) == 2
    assert f"{other.dir.name} is running" in capsys.readouterr().err
    assert main(["rm", store.dir.name, "absent"]) == 2
    assert store.dir.is_dir() and other.dir.is_dir()


def test_a_filter_that_cannot_match_is_refused(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    for text, problem in (("lr>", "lr> needs a value"), ("lr>abc", "'abc' is not one")):
        assert main(["find", store.dir.name, text]) == 2
        assert problem in capsys.readouterr().err


def test_all_runs_of_a_folder_are_removed_only_when_asked_for(
    store: RunStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rm"]) == 2
    assert "No run was given" in capsys.readouterr().err
    assert main(["rm", "--all", store.dir.name]) == 2
    assert "With --all no runs are named" in capsys.readouterr().err and store.dir.is_dir()
    assert main(["rm", "--all", "--permanently"]) == 0
    assert not store.dir.is_dir()
    assert main(["rm", "--all"]) == 0, "an empty folder is no error"


@pytest.mark.usefixtures("store")
def test_a_run_that_ended_is_not_listed_among_live_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--live", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main(["runs", "--live"]) == 0
    assert "is running" in capsys.readouterr().out
    assert main(["runs", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1
