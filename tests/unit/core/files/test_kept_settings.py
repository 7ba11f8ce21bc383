"""Settings of this machine in the folder of runs: kept, read again, and damaged."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from core.errors import PreflightError
from core.files.kept_settings import keep_settings, read_settings
from core.paths import default_runs_dir

FILE = "sizes.json"


@dataclass(frozen=True, slots=True)
class Sizes:
    width: int = 3
    name: str = "so"


def test_what_is_kept_is_read_and_says_what_it_is() -> None:
    assert read_settings(FILE, Sizes()) == Sizes()
    keep_settings(FILE, "rankdeck-sizes", Sizes(5, "ü"))
    assert read_settings(FILE, Sizes()) == Sizes(5, "ü")
    values = json.loads((default_runs_dir() / FILE).read_text(encoding="utf-8"))
    assert values == {"format": "rankdeck-sizes", "version": 1, "width": 5, "name": "ü"}


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"width": "wide"}', b"\xff\xfe", b'{"width": 5, "na'])
def test_what_cannot_be_read_is_the_default(content: bytes) -> None:
    default_runs_dir().mkdir(parents=True, exist_ok=True)
    (default_runs_dir() / FILE).write_bytes(content)
    assert read_settings(FILE, Sizes(7)) == Sizes(7)


def test_a_folder_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = default_runs_dir()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a file").write_text("x", encoding="utf-8")
    monkeypatch.setenv("RANKDECK_HOME", str(folder / "a file"))
    with pytest.raises(PreflightError, match="could not be made"):
        keep_settings(FILE, "rankdeck-sizes", Sizes())
