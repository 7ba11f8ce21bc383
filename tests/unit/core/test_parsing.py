"""The one door through which JSON, TOML and YAML that anyone may have written come in, and its limits."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

import core
from core.parsing import MAX_DEPTH, MAX_DIGITS, ParseError, parse_json, parse_toml, parse_yaml, type_text

pytestmark = pytest.mark.windows
OWN_READERS = {
    "core/machines/agent.py": "is sent to machines alone, without the rest of core",
    "core/metrics/columns.py": "orjson, on lines that the run's own host wrote",
    "core/export/lines.py": "orjson: millions of lines",
    "core/protocol/server.py": "orjson: the hot path of ranks",
}
LAUGHS = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10))])


def test_what_is_ordinary_is_read() -> None:
    assert parse_json(b'{"a": [1, 2.5, null, true, "gr\xc3\xb6\xc3\x9fe"]}') == {"a": [1, 2.5, None, True, "größe"]}
    assert parse_json("-9223372036854775808") == -(2**63)
    assert parse_toml('a.b = 1\n[c]\nd = [1, 2]\ne = "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18"\n') == {
        "a": {"b": 1},
        "c": {"d": [1, 2], "e": "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18"},
    }
    assert parse_toml("a = '''\nx = \"'" + "." * 99 + "'''\n# " + "." * 99 + "\n")["a"].endswith(".")
    nan = parse_json("[NaN]")[0]
    assert math.isnan(nan), "what it may be is the field's business"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"[1", "ends in the middle"),
        (b'{"a": "x', "ends in the middle"),
        (b'{"a" 1}', "expecting ':'"),
        ("{}".encode("utf-16"), "UTF-16"),
        ("{}".encode("utf-16-le"), "UTF-16"),
        ("{}".encode("utf-16-be"), "UTF-16"),
        ("{}".encode("utf-32"), "UTF-32"),
        (b'{"a": "\xff"}', "byte 7 is not UTF-8"),
        (b"[" * 100_000, "nested"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nested"),
        (b'{"a":' * 2000 + b"1" + b"}" * 2000, "nested"),
        (b"9" * 5000, "digits"),
        (b'{"a": -' + b"9" * (MAX_DIGITS + 1) + b"}", "digits"),
    ],
)
def test_json_beyond_the_limits_is_one_error(text: bytes, problem: str) -> None:
    with pytest.raises(ParseError, match=problem):
        parse_json(text)


def test_json_names_line_and_column() -> None:
    with pytest.raises(ParseError) as caught:
        parse_json('{"a": 1,\n "b": }')
    assert (caught.value.line, caught.value.column) == (2, 7)
    assert str(caught.value) == "expecting value (line 2, column 7)"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a" + ".a" * 20_000 + " = 1", "more than 16 parts"),
        ("[a" + ".a" * 20_000 + "]", "more than 16 parts"),
        ("x = {a" + ' . "a"' * 20_000 + " = 1}", "more than 16 parts"),
        ("a = " + "9" * 5000, "digits"),
        ("a = " + "9" * (MAX_DIGITS + 1), "digits"),
        ("a = " + "[" * 100_000, "nested"),
        ("a = " + "[" * 100 + "]" * 100, "nested"),
        ("a = = 2", "line 1"),
        ('a = "' + '\\"' * 200_000, "end of document"),
    ],
)
def test_toml_beyond_the_limits_is_one_error(text: str, problem: str) -> None:
    with pytest.raises(ParseError, match=problem):
        parse_toml(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: " + "9" * 5000, "digits"),
        ("a: " + "[" * 100 + "]" * 100, "nested"),
        ("a: &a [*a]", "nested"),
        (LAUGHS, "values"),
        ("a: [", "line 2"),
        ("a: !!python/object:os.system {}", "constructor"),
    ],
)
def test_yaml_beyond_the_limits_is_one_error(text: str, problem: str) -> None:
    with pytest.raises(ParseError, match=problem):
        parse_yaml(text + "\n")


def test_nothing_else_in_core_parses_what_others_wrote() -> None:
    """A reader of its own has none of the limits; one that must be fast has its reason here."""
    root = Path(core.__file__).parents[1]
    found = set()
    for path in (root / "core").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if re.search(r"(?:json|tomllib|yaml)\.(?:safe_)?loads?\b", text):
            found.add(path.relative_to(root).as_posix())
    assert found - {"core/parsing.py"} == set(OWN_READERS)


@pytest.mark.windows
def test_a_bytearray_is_read_as_bytes_are() -> None:
    """asyncio hands data over as bytes under Linux, as a bytearray under Windows."""
    assert parse_json(bytearray(b'{"pid": 7}')) == {"pid": 7}
    with pytest.raises(ParseError, match="UTF-16"):
        parse_json(bytearray('{"pid": 7}'.encode("utf-16")))


def test_kinds_are_words() -> None:
    assert [type_text(v) for v in (None, True, 1, 1.5, "", [], {})] == [
        "nothing (null)",
        "true or false",
        "a whole number",
        "a number",
        "text",
        "a list",
        "an object",
    ]
