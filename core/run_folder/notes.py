"""Notes on a run, `notes.json` in its folder: a name, free text, tags, a pin."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from core.errors import StateFileError, UsageError
from core.files.atomic import read_json, require_format, write_atomic
from core.records import Limits, RecordError, Text, read_record

NOTES: Final = "notes.json"
FORMAT: Final = "rankdeck-notes"
VERSION: Final = 1
MAX_BYTES: Final = 1 << 18
MAX_NAME: Final = 120
MAX_TAG: Final = 40
MAX_TAGS: Final = 50
MAX_NOTE: Final = 50_000


@dataclass(frozen=True, slots=True)
class RunNotes:
    name: Annotated[str, Limits(0, MAX_NAME)] = ""
    note: Annotated[str, Limits(0, MAX_NOTE)] = ""
    tags: Annotated[tuple[Text, ...], Limits(0, MAX_TAGS)] = ()
    pinned: bool = False

    def renamed(self, name: str) -> RunNotes:
        """Change the name, or remove it; raises `UsageError` if it is too long or has line breaks."""
        name = name.strip()
        if len(name) > MAX_NAME or not name.isprintable():
            raise UsageError(
                f"A name has at most {MAX_NAME} characters and no line breaks; this one has {len(name)} characters.",
                "Give a shorter name. A note can be longer.",
                title="The name cannot be used",
            )
        return dataclasses.replace(self, name=name)

    def noted(self, note: str) -> RunNotes:
        if len(note) > MAX_NOTE:
            raise UsageError(
                f"A note has at most {MAX_NOTE:,} characters; this one has {len(note):,}.",
                "Shorten it, or keep it in a file of its own.",
                title="The note is too long",
            )
        return dataclasses.replace(self, note=note.strip())

    def tagged(self, added: Iterable[str] = (), removed: Iterable[str] = ()) -> RunNotes:
        """Add and remove tags, in lower case; raises `UsageError` for an unusable tag, or too many."""
        wanted = {tag.strip().lower() for tag in added}
        for tag in wanted:
            if not 0 < len(tag) <= MAX_TAG or not tag.isprintable() or any(c.isspace() or c in ",:" for c in tag):
                raise UsageError(
                    f"{tag!r:.60} is not a tag: a tag has 1 to {MAX_TAG} characters, no blanks, commas or colons.",
                    "Give single words, for example: night lr-test",
                    title="The tag cannot be used",
                )
        tags = tuple(sorted((set(self.tags) | wanted) - {tag.strip().lower() for tag in removed}))
        if len(tags) > MAX_TAGS:
            raise UsageError(
                f"A run has at most {MAX_TAGS} tags.", "Remove some first.", title="The run has too many tags"
            )
        return dataclasses.replace(self, tags=tags)


def read_notes(run_dir: Path) -> RunNotes:
    path = run_dir / NOTES
    if not path.exists():
        return RunNotes()
    document = require_format(read_json(path, limit_bytes=MAX_BYTES), path, FORMAT, VERSION)
    try:
        return read_record(RunNotes, document)
    except RecordError as error:
        raise StateFileError(f"{path}: {error}.", "Delete it, or correct the value.") from error


def write_notes(run_dir: Path, notes: RunNotes) -> None:
    document = {"format": FORMAT, "version": VERSION, **dataclasses.asdict(notes)}
    write_atomic(run_dir / NOTES, json.dumps(document, ensure_ascii=False, indent=1) + "\n")
