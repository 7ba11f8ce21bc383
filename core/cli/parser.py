"""Argument parser. A mistake becomes a `UsageError`: three lines, never a page of usage."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Final, NoReturn

from core.cli.commands import COMMANDS
from core.errors import UsageError

_ACTV1: Final = "train-actv1"
_SCRIPT_COMMAND: Final = "run"
VERSION_FLAG: Final = "--version"
_USAGES: Final = {"run": "rankdeck run [FLAGS] SCRIPT [ARGS …] | rankdeck run [FLAGS] -m MODULE [-- ARGS …]"}
# argparse's messages, and ours.
_SENTENCES: Final = (
    (r"unrecognized arguments: (.*)", "There is no flag or argument {}."),
    (r"the following arguments are required: (.*)", "Something is missing: {}."),
    (r"argument COMMAND: invalid choice: '([^']*)'", "There is no command {!r}."),
    (r"argument ([\w-]+): invalid choice: '([^']*)'", "{} cannot be {!r}."),
)


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` that raises instead of printing and exiting; --help still prints."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(_sentence(message), self._next_step(message), title="Invalid command")

    @property
    def flags(self) -> Collection[str]:
        return self._option_string_actions

    def _next_step(self, message: str) -> str:
        wrong = re.search(r"(?:unrecognized arguments|ambiguous option): (--?[\w-]+)", message)
        if wrong is not None:
            near = difflib.get_close_matches(wrong[1], list(self._option_string_actions), n=1)
            if near:
                return f"Did you mean {near[0]}? {self.prog} --help lists every flag."
        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if choice is not None:
            names = re.findall(r"[\w-]+", choice[2])
            near = difflib.get_close_matches(choice[1].lower(), names, n=1)
            meant = f"Did you mean {near[0]}? " if near else ""
            if message.startswith("argument COMMAND"):
                return meant.rstrip() or f"The commands are: {', '.join(names)}."
            return f"{meant}It takes one of: {', '.join(names)}."
        return f"{self.prog} --help lists its arguments."


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line without the program's name; `command` is the command's name.

    Raises:
        UsageError: They are invalid.
        SystemExit: After --help.
    """
    parser, commands = _build()
    arguments, rest = parser.parse_known_args(_translated(argv, commands))
    if rest:
        commands.get(arguments.command, parser).error(f"unrecognized arguments: {' '.join(rest)}")
    return arguments


def _translated(argv: Sequence[str], commands: Mapping[str, Parser]) -> list[str]:
    """Translate names of AI-OS, and write flags such as ``--batch_size`` with dashes; those of a script are its own."""
    arguments = translate_aliases(argv)
    name = arguments[0] if arguments else ""
    if name not in commands or name == _SCRIPT_COMMAND:
        return arguments
    return [_dashed(argument, commands[name].flags) for argument in arguments]


@cache
def _build() -> tuple[Parser, dict[str, Parser]]:
    parser = Parser(prog="rankdeck", description="Trains PyTorch models on several devices.", allow_abbrev=False)
    parser.add_argument(VERSION_FLAG, action="store_true", help="Print the version.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    made: dict[str, Parser] = {}
    for command in COMMANDS:
        made[command.name] = commands.add_parser(
            command.name,
            usage=_USAGES.get(command.name),
            help=command.text,
            description=command.text,
            allow_abbrev=False,
        )
        for add in command.arguments:
            add(made[command.name])
    return parser, made


def _sentence(message: str) -> str:
    for pattern, sentence in _SENTENCES:
        found = re.match(pattern, message)
        if found is not None:
            return sentence.format(*found.groups())
    return f"{message[0].upper()}{message[1:].rstrip('.')}."


def translate_aliases(arguments: Sequence[str]) -> list[str]:
    """Translate AI-OS's ``train-actv1`` and ``hrm-hf train-actv1`` into ``train --recipe actv1``."""
    rest = list(arguments[1:] if arguments[:1] == ["hrm-hf"] else arguments)
    if rest[:1] == [_ACTV1]:
        return ["train", "--recipe", "actv1", *rest[1:]]
    return list(arguments)


def _dashed(argument: str, flags: Collection[str]) -> str:
    name, equals, value = argument.partition("=")
    dashed = name.replace("_", "-")
    return dashed + equals + value if name.startswith("--") and dashed in flags else argument
