"""Aliases: commands and flags of other programs, translated before they are parsed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

_ACTV1: Final = "train-actv1"
_LOCAL_RANK: Final = "--local-rank="
_SCRIPT_COMMAND: Final = "run"


def translate_aliases(arguments: Sequence[str]) -> list[str]:
    """AI-OS's ``train-actv1`` and ``hrm-hf train-actv1`` as ``train --recipe actv1``.

    `torch.distributed.launch` puts its ``--local-rank=N`` in front of the command; it comes behind it.
    """
    if arguments[:1] and arguments[0].replace("_", "-").startswith(_LOCAL_RANK):
        given, *rest = arguments
        translated = translate_aliases(rest)
        return [*translated[:1], given.replace("_", "-"), *translated[1:]]
    rest = list(arguments[1:] if arguments[:1] == ["hrm-hf"] else arguments)
    if rest[:1] == [_ACTV1]:
        return ["train", "--recipe", "actv1", *rest[1:]]
    return list(arguments)


def with_dashes(arguments: Sequence[str], takes_value: Mapping[str, Mapping[str, bool]]) -> list[str]:
    """Flags written with underscores (``--batch_size``) with dashes, where that is a flag of the command.

    Args:
        arguments: A command and what follows it.
        takes_value: Each command's flags, and whether a value follows.
    """
    flags = takes_value.get(arguments[0], {}) if arguments else {}
    end = end_of_flags(arguments, flags)
    return [_dashed(argument, flags) if place < end else argument for place, argument in enumerate(arguments)]


def _dashed(argument: str, flags: Collection[str]) -> str:
    name, equals, value = argument.partition("=")
    dashed = name.replace("_", "-")
    return dashed + equals + value if name.startswith("--") and dashed in flags else argument


def end_of_flags(arguments: Sequence[str], flags: Mapping[str, bool]) -> int:
    """Where the command's own arguments end; those of a script follow, and are not ours to read."""
    if list(arguments[:1]) != [_SCRIPT_COMMAND]:
        return len(arguments)
    place = 1
    while place < len(arguments):
        argument = _dashed(arguments[place], flags)
        name = argument.partition("=")[0]
        if name not in flags:
            return place
        place += 2 if flags[name] and "=" not in argument else 1
    return place
