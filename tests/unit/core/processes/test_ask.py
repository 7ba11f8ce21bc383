"""A program that is asked: its answer is the last JSON object that it printed, unless it failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.processes.ask import Answer, ask_program
from tests.helpers.children import children_with

READ = "import json, sys; asked = json.load(open(sys.argv[-1], encoding='utf-8'))\n"


def ask(tmp_path: Path, text: str, limit_s: float = 30.0) -> Answer:
    program = tmp_path / "Programm mit Raum.py"
    program.write_text(READ + text, encoding="utf-8")
    return ask_program((str(program),), {"text": "Grüße"}, {"LC_ALL": "C"}, limit_s)


def test_the_last_object_is_the_answer(tmp_path: Path) -> None:
    answer = ask(tmp_path, "print('loaded'); print(json.dumps(asked)); print('bye', file=sys.stderr)")
    assert (answer.values, answer.outcome, answer.in_time) == ({"text": "Grüße"}, "exited normally", True)


@pytest.mark.parametrize(
    ("text", "values", "last_line"),
    [
        ("print('[1]')", None, "[1]"),
        ("pass", None, ""),
        ("print('{}'); sys.exit('broken')", None, "broken"),
        ("""print('{"cause": "So it is."}'); sys.exit(1)""", {"cause": "So it is."}, '{"cause": "So it is."}'),
    ],
)
def test_a_program_that_fails_answers_only_with_a_cause(
    text: str, values: object, last_line: str, tmp_path: Path
) -> None:
    answer = ask(tmp_path, text)
    assert (answer.values, answer.last_line) == (values, last_line)
    assert answer.failure.startswith(answer.outcome) and answer.failure.endswith(last_line)


def test_one_that_takes_too_long_or_is_not_wanted_any_more_is_ended(tmp_path: Path) -> None:
    answer = ask(tmp_path, "import time; time.sleep(60)", limit_s=0.0)
    assert (answer.values, answer.outcome, answer.in_time) == (None, "is running", False)

    def cancel(folder: Path) -> None:
        assert (folder / "request.json").is_file()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask_program((str(tmp_path / "Programm mit Raum.py"),), {}, {}, None, cancel)
    assert not children_with("Raum.py")
