"""Files of a set of ranks, carried from one machine's folder to another's."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.trials.set_files import PART, SetFiles

OTHERS = frozenset({1, 2})


@pytest.fixture
def folders(tmp_path: Path) -> tuple[SetFiles, SetFiles]:
    """This machine's with rank 0, and another's with the other ranks."""
    for name in ("here/rank0", "there/rank1"):
        (tmp_path / name).mkdir(parents=True)
    here = SetFiles(tmp_path / "here", lambda rank: rank not in OTHERS, lambda rank: rank in OTHERS)
    return here, SetFiles(tmp_path / "there", lambda rank: rank in OTHERS, lambda rank: rank not in OTHERS)


def carry(source: SetFiles, target: SetFiles) -> list[str]:
    """What was carried."""
    messages = source.news()
    for message in messages:
        target.take(message)
    return [str(message["file"]) for message in messages]


def test_each_file_is_carried_once(folders: tuple[SetFiles, SetFiles]) -> None:
    here, there = folders
    (here.folder / "trial-1.json").write_text('{"ä": 1}', encoding="utf-8")
    (here.folder / "rank0" / "here-1-1").touch()
    (there.folder / "rank1" / "ready").touch()
    assert carry(here, there) == ["rank0/here-1-1", "trial-1.json"] and carry(here, there) == []
    assert carry(there, here) == ["rank1/ready"], "what came from here does not go back"
    assert (there.folder / "trial-1.json").read_text(encoding="utf-8") == '{"ä": 1}'
    assert (there.folder / "rank0" / "here-1-1").exists() and (here.folder / "rank1" / "ready").exists()


def test_a_large_answer_comes_in_parts_and_is_there_when_it_is_whole(folders: tuple[SetFiles, SetFiles]) -> None:
    here, there = folders
    text = "0123456789" * PART
    (there.folder / "rank1" / "result-1.json").write_text(text, encoding="utf-8")
    *messages, last = there.news()
    assert len(messages) == 9
    for message in messages:
        here.take(message)
    assert not (here.folder / "rank1" / "result-1.json").exists()
    here.take(last)
    assert (here.folder / "rank1" / "result-1.json").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    "name", ["rank0/result-1.json", "trial-2.json", "rank1/../../secret", "rank1/own.py", "/etc/rank1/ready", "logs/x"]
)
def test_only_what_a_rank_there_writes_is_taken(name: str, folders: tuple[SetFiles, SetFiles]) -> None:
    here, _ = folders
    here.take({"file": name, "text": "x"})
    assert [path for path in here.folder.rglob("*") if path.is_file()] == []


def test_other_files_stay_where_they_are(folders: tuple[SetFiles, SetFiles]) -> None:
    here, there = folders
    (here.folder / "logs").mkdir()
    (here.folder / "logs" / "rank0.log").write_text("log", encoding="utf-8")
    (here.folder / "rank0" / "tokens.bin").write_bytes(b"\0")
    assert carry(here, there) == []
