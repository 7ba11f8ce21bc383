"""The grammar: every command of the contract, and mistakes as three sentences."""

from __future__ import annotations

import pytest

from core.cli.parser import parse, repeated_flags
from core.errors import UsageError


@pytest.mark.parametrize(
    "words",
    [
        "train --steps 5 --json",
        "train --detach --set n_layer=2 --set n_head=2",
        "resume some/path --steps 10 --detach",
        "stop run-1 --now",
        "attach run-1 --json",
        "runs --json",
        "show run-1 --json",
        "devices --json",
        "recipes --json",
        "doctor --json",
    ],
)
def test_every_command_of_the_contract_is_understood(words: str) -> None:
    assert parse(words.split()).command == words.split()[0]


@pytest.mark.parametrize(
    ("words", "cause", "step"),
    [
        (["trian"], "no command 'trian'", "Did you mean train?"),
        (["xyzzy"], "no command 'xyzzy'", "attach"),
        (["train", "--stpes", "3"], "--stpes", "Did you mean --steps?"),
        (["train", "--step", "3"], "--step", "--steps"),
        (["train", "--qqqq"], "--qqqq", "rankdeck train --help"),
        (["train", "--steps"], "expected one argument", "rankdeck train --help"),
        (["export", "r", "--to", "foo"], "--to cannot be 'foo'.", "--to takes one of: csv, "),
        (["export", "r", "--to", "tensorbord"], "--to cannot be 'tensorbord'.", "Did you mean tensorboard?"),
        (["resume"], "PATH", "rankdeck resume --help"),
        (["stop", "a", "b"], "b", "rankdeck stop --help"),
    ],
)
def test_a_mistake_is_said_in_words(words: list[str], cause: str, step: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(words)
    assert cause in caught.value.cause
    assert step in caught.value.next_step
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("words", "repeated"),
    [
        ("train --lr 1e-3 --steps 5 --lr=2e-3", ["--lr"]),
        ("train --batch_size 2 --batch-size 3 --strict --no-strict", ["--batch-size", "--strict"]),
        ("train --set a=1 --set b=2 --env A=1 --env B=2", []),
        ("resume --steps 5 --steps 6 run", ["--steps"]),
        ("run --steps 5 script.py --lr 1 --lr 2 --steps 6", []),
        ("--version", []),
    ],
)
def test_flags_given_twice_are_found(words: str, repeated: list[str]) -> None:
    assert repeated_flags(words.split()) == repeated


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["resume", "-h"]])
def test_help_is_printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(words)
    assert caught.value.code == 0
    assert "rankdeck" in capsys.readouterr().out
