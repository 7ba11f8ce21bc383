"""Parsers of JSON, TOML and YAML that anyone may have written: files of runs and recipes, lines from a socket.

The parsers of the standard library have no limits: one dotted TOML key of 40 KB takes 18 s and 2 GB, and an integer of
5,000 digits or a list nested 100,000 deep ends in an exception of another kind in each. Here everything that is wrong
with a text is a `ParseError`. Only YAML needs more than the standard library, because a rank imports this module.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, Final

# Levels of lists and objects in each other. Nothing that Rankdeck writes has more than six.
MAX_DEPTH: Final = 64
# Digits of an integer. Every shorter one fits a float, which Python's own limit (4,300) does not ensure.
MAX_DIGITS: Final = 300
# Parts of a dotted TOML key. Time and memory of `tomllib` grow with their square.
MAX_KEY_PARTS: Final = 16
# Values of a YAML file, whose aliases make nine short lines into a thousand million.
MAX_VALUES: Final = 100_000

_NESTED: Final = f"it is nested more than {MAX_DEPTH} levels deep"
_DIGITS: Final = f"it holds an integer of more than {MAX_DIGITS} digits"
# Strings and comments; one that does not end reaches to the end of its line or of the text, where the parser complains.
_TOML_TEXT: Final = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"""|\Z)|'
    r"'''.*?(?:'''|\Z)|"
    r'"(?:\\[^\n]|[^"\\\n])*+"?|'
    r"'[^'\n]*+'?|"
    r"#[^\n]*+",
    re.DOTALL,
)
_CUT: Final = re.compile(r"[-+.\w]*\s*")
_TOML_BREAKS: Final = re.compile(r"[=,\[\]{}\n]")
_TYPE_TEXTS: Final[Mapping[type, str]] = {
    type(None): "nothing (null)",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}


class ParseError(ValueError):
    """A text that cannot be read, or goes beyond the limits.

    Args:
        problem: What is wrong, as the end of a sentence: "it is nested more than 64 levels deep".
        line, column: Where, counted from 1, if the parser tells.
        cut_off: Whether the text ends in the middle, as after a crash or an unfinished copy.
    """

    def __init__(
        self, problem: str, line: int | None = None, column: int | None = None, *, cut_off: bool = False
    ) -> None:
        place = f" (line {line}, column {column})" if line is not None else ""
        super().__init__(problem + place)
        self.problem = problem
        self.line = line
        self.column = column
        self.cut_off = cut_off


def decode_utf8(data: bytes | bytearray) -> str:
    """Decode bytes; a byte order mark stays in the text.

    Raises:
        ParseError: They are not UTF-8; UTF-16 and UTF-32, which editors on Windows write, are called by their names.
    """
    other = _other_encoding(data)
    if other is not None:
        raise ParseError(f"it is {other} text, not UTF-8")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParseError(f"byte {error.start} is not UTF-8") from None


def parse_json(
    text: str | bytes | bytearray,
    *,
    pairs: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Any:
    """Parse a JSON text, or UTF-8 without a byte order mark. NaN and infinities come through: their field checks them.

    `pairs` makes an object from its keys and values; None makes a dict, in which the last of two equal keys counts.

    Raises:
        ParseError: It is not JSON, not UTF-8, or beyond the limits.
    """
    if isinstance(text, bytes | bytearray):  # asyncio under Windows hands bytearrays over
        text = decode_utf8(text)
    decoder = _JSON
    if pairs is not None:
        decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_int=_integer)
    try:
        value = decoder.decode(text)
    except json.JSONDecodeError as error:
        # What a cut leaves: nothing more, a string without its end, or a part of true, null or a number.
        cut_off = error.msg.startswith("Unterminated") or bool(_CUT.fullmatch(text, error.pos))
        what = "it ends in the middle" if cut_off else error.msg[0].lower() + error.msg[1:]
        raise ParseError(what, error.lineno, error.colno, cut_off=cut_off) from None
    except RecursionError:
        raise ParseError(_NESTED) from None
    if isinstance(value, list | dict) and text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(value)
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML text; raises `ParseError`."""
    bare = _TOML_TEXT.sub("s", text)
    if any(piece.count(".") >= MAX_KEY_PARTS for piece in _TOML_BREAKS.split(bare)):
        raise ParseError(f"it holds a dotted key of more than {MAX_KEY_PARTS} parts")
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParseError(str(error)) from None
    except RecursionError:
        raise ParseError(_NESTED) from None
    except ValueError:  # Python's limit of digits; tomllib lets it through
        raise ParseError(_DIGITS) from None
    _check_tree(value)
    return value


def parse_yaml(text: str) -> Any:
    """Parse a YAML text into plain types; raises `ParseError`."""
    # Not at the top: a rank reads no YAML, and a script's own environment may lack it.
    import yaml

    try:
        value = yaml.safe_load(text)
        _check_keys(yaml.compose(text, yaml.SafeLoader), levels=2)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = " ".join(str(getattr(error, "problem", None) or error).split())
        raise ParseError(what, *((mark.line + 1, mark.column + 1) if mark is not None else ())) from None
    except RecursionError:
        raise ParseError(_NESTED) from None
    except ParseError:
        raise
    except ValueError as error:  # an integer over Python's limit of digits, or a date that there is not
        raise ParseError(_DIGITS if "digits" in str(error) else str(error)) from None
    _check_tree(value)
    return value


def _check_keys(node: Any, levels: int) -> None:
    seen: set[str] = set()
    for key, value in node.value if getattr(node, "id", "") == "mapping" else ():
        if key.id == "scalar" and key.value != "<<":
            if key.value in seen:
                raise ParseError(f"it has {key.value!r} twice", key.start_mark.line + 1, key.start_mark.column + 1)
            seen.add(key.value)
        if levels > 1:
            _check_keys(value, levels - 1)


def type_text(value: object) -> str:
    """A JSON value's type for a person who never saw Python: "a list", "text", "nothing (null)", …."""
    return _TYPE_TEXTS.get(type(value), type(value).__name__)


def _other_encoding(data: bytes | bytearray) -> str | None:
    """The name of an encoding that is certainly not UTF-8; JSON and TOML begin with an ASCII character."""
    start = data[:4]
    if start in (b"\xff\xfe\0\0", b"\0\0\xfe\xff") or (len(start) == 4 and start.count(0) == 3):
        return "UTF-32"
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or (len(start) >= 2 and start[:2].count(0) == 1):
        return "UTF-16"
    return None


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ParseError(_DIGITS)
    return int(digits)


_JSON: Final = json.JSONDecoder(parse_int=_integer)


def _check_depth(value: list[Any] | dict[str, Any]) -> None:
    """Check the depth of a tree level by level; recursion would end as the parser's own does."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = [item.values() if isinstance(item, dict) else item for item in level]
        level = [item for items in inner for item in items if isinstance(item, list | dict)]
        if not level:
            return
    raise ParseError(_NESTED)


def _check_tree(value: Any) -> None:
    """As `_check_depth`, for parsers that cannot be told the limit of digits; ends early in a tree with aliases."""
    level, count = [value], 0
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for item in level:
            if isinstance(item, int) and abs(item) >= 10**MAX_DIGITS:
                raise ParseError(_DIGITS)
            below += (
                [*item.keys(), *item.values()] if isinstance(item, dict) else item if isinstance(item, list) else ()
            )
            count += 1
            if count + len(below) > MAX_VALUES:
                raise ParseError(f"it holds more than {MAX_VALUES:,} values")
        if not below:
            return
        level = below
    raise ParseError(_NESTED)
