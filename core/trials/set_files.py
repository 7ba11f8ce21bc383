"""`SetFiles`: the files by which ranks of one set speak with each other, carried between machines that share none.

Ranks ask and answer by small files in one folder (`core.trials.ranks`), each of which is written once, and whole. A set
on several machines has a folder on each. What one machine's ranks have written is sent to the others once: over a
network drive they would see it only when its cache asks again, half a minute later with NFS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from core.files.atomic import write_atomic
from core.held_files import read_utf8

PART: Final = 1 << 17
"""Characters of a file that one message carries at most; a line of a channel has its limit."""
_NAME: Final = re.compile(
    r"trial-\d{1,6}\.json|rank(?P<rank>\d{1,5})/(ready|here-\d{1,6}-\d{1,6}|result-\d{1,6}\.json)"
)


class SetFiles:
    """One machine's folder of a set.

    Args:
        folder: It.
        is_sent: Whether a rank's files (None: the requests to all) are to be sent from here.
        is_taken: Whether they may come from there.
    """

    def __init__(
        self, folder: Path, is_sent: Callable[[int | None], bool], is_taken: Callable[[int | None], bool]
    ) -> None:
        self.folder = folder
        self._is_sent, self._is_taken = is_sent, is_taken
        self._known: set[str] = set()
        self._parts: dict[str, list[str]] = {}

    def news(self) -> list[dict[str, Any]]:
        """What was written since the last call, as messages."""
        found: list[dict[str, Any]] = []
        for path in sorted([*self.folder.glob("trial-*"), *self.folder.glob("rank*/*")]):
            name = path.relative_to(self.folder).as_posix()
            if name not in self._known and _wants(name, self._is_sent):
                self._known.add(name)
                found += _messages(name, read_utf8(path))
        return found

    def take(self, message: Mapping[str, Any]) -> None:
        """Writes what another machine has sent; what it may not send is left out.

        Raises:
            RankdeckError: The disk refuses.
        """
        name = str(message.get("file"))
        if not _wants(name, self._is_taken):
            return
        parts = self._parts.setdefault(name, [])
        parts.append(str(message.get("text", "")))
        if not message.get("more"):
            del self._parts[name]
            self._known.add(name)
            (self.folder / name).parent.mkdir(exist_ok=True)
            write_atomic(self.folder / name, "".join(parts), durable=False)


def _wants(name: str, rule: Callable[[int | None], bool]) -> bool:
    found = _NAME.fullmatch(name)
    return found is not None and rule(None if found["rank"] is None else int(found["rank"]))


def _messages(name: str, text: str) -> Iterator[dict[str, Any]]:
    parts = [text[start : start + PART] for start in range(0, len(text), PART)] or [""]
    for number, part in enumerate(parts, 1):
        yield {"file": name, "text": part, "more": number < len(parts)}
