"""Commands and flags as people of other programs write them, made into ours before they are parsed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

_ACTV1: Final = "train-actv1"
_SCRIPT_COMMAND: Final = "run"


def our_words(words: Sequence[str]) -> list[str]:
    """AI-OS's ``train-actv1`` and ``hrm-hf train-actv1`` as ``train --recipe actv1``."""
    rest = list(words[1:] if words[:1] == ["hrm-hf"] else words)
    if rest[:1] == [_ACTV1]:
        return ["train", "--recipe", "actv1", *rest[1:]]
    return list(words)


def with_dashes(words: Sequence[str], takes_value: Mapping[str, Mapping[str, bool]]) -> list[str]:
    """Flags written with underscores (``--batch_size``) with dashes, where that is a flag of the command.

    Args:
        words: A command and what follows it.
        takes_value: Each command's flags, and whether a value follows.
    """
    flags = takes_value.get(words[0], {}) if words else {}
    end = _end_of_flags(words, flags) if words[:1] == [_SCRIPT_COMMAND] else len(words)
    return [_dashed(word, flags) if place < end else word for place, word in enumerate(words)]


def _dashed(word: str, flags: Collection[str]) -> str:
    name, equals, value = word.partition("=")
    dashed = name.replace("_", "-")
    return dashed + equals + value if name.startswith("--") and dashed in flags else word


def _end_of_flags(words: Sequence[str], flags: Mapping[str, bool]) -> int:
    """Where the script's own words begin: what stands there is not ours to change."""
    place = 1
    while place < len(words):
        word = _dashed(words[place], flags)
        name = word.partition("=")[0]
        if name not in flags:
            return place
        place += 2 if flags[name] and "=" not in word else 1
    return place
