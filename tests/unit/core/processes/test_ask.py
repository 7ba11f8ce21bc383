"""A program that is asked: its answer is the last JSON object that it printed, unless it failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.processes.ask import Answer, ask_program, ask_programs
from tests.helpers.children import children_with

pytestmark = pytest.mark.windows


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


def test_several_are_asked_at_the_same_time_and_meet_in_a_folder(tmp_path: Path) -> None:
    program = tmp_path / "meets.py"
    program.write_text(
        READ + "import pathlib, time\n"
        "here = pathlib.Path(sys.argv[-1]).parent\n"
        "(here.parent / asked['name']).touch()\n"
        "while not (here.parent / asked['other']).exists(): time.sleep(0.01)\n"
        "print(json.dumps(asked))\n",
        encoding="utf-8",
    )
    requests = [{"name": "a", "other": "b"}, {"name": "b", "other": "a"}]
    answers = ask_programs((str(program),), requests, [{}, {}], 30.0)
    assert [answer.values for answer in answers] == requests
    assert [answer.code for answer in answers] == [0, 0]


def test_one_that_fails_ends_those_that_wait_for_it(tmp_path: Path) -> None:
    program = tmp_path / "waits in vain.py"
    program.write_text(READ + "import time\nif asked['fails']: sys.exit('broken')\ntime.sleep(60)\n", encoding="utf-8")
    waits, fails = ask_programs((str(program),), [{"fails": False}, {"fails": True}], [{}, {}], 30.0)
    assert (waits.in_time, waits.code) == (False, None)
    assert (fails.code, fails.last_line) == (1, "broken")
    assert not children_with("in vain")
