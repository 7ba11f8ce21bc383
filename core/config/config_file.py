"""Config files: reads TOML, YAML and JSON, writes TOML and JSON, with the format's version.

A file's keys are the flags' names, with dashes or underscores; sections one level deep are only headings,
except ``[options]``, which holds the recipe's own fields, and ``[env]``, which holds environment variables.
`core.config.layers` interprets them.
"""

from __future__ import annotations

import functools
import json
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import tomli_w

from core.config.run_config import RunConfig
from core.errors import ConfigError
from core.held_files import read_all, read_utf8
from core.parsing import ParseError, decode_utf8, parse_json, parse_toml, parse_yaml

VERSION_KEY: Final = "rankdeck"
VERSION: Final = 1
SUFFIXES: Final = (".toml", ".yaml", ".yml", ".json")
MAX_FILE_BYTES: Final = 1 << 20


def read_config(path: Path) -> dict[str, Any]:
    """Read the unchecked keys and values of a .toml, .yaml, .yml or .json file, in today's version.

    Raises:
        ConfigError: Not there, unreadable, not what its suffix says, or written by a newer version; names the line
            where the parser tells it.
    """
    text = _read_text(path)
    suffix = path.suffix.lower()
    if suffix == ".toml":
        values = _parsed(path, text, "TOML", parse_toml)
    elif suffix == ".json":
        values = _parsed(path, text, "JSON", functools.partial(parse_json, pairs=_without_repetition))
    elif suffix in (".yaml", ".yml"):
        values = _parsed(path, text, "YAML", parse_yaml)
    else:
        raise _broken(path, f"its name ends in {suffix or 'nothing'!r}", f"Use one of {', '.join(SUFFIXES)}.")
    if values is None:
        return {}  # an empty YAML file
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise _broken(path, "it holds no table of settings", "Write one setting a line, for example: steps = 200")
    return without_version(values, path)


def without_version(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Remove the format's version; raises `ConfigError` if it is newer than ours, or no version at all."""
    written = values.get(VERSION_KEY, VERSION)
    if isinstance(written, bool) or not isinstance(written, int) or written < 1:
        raise _broken(path, f"{VERSION_KEY} = {written!r} is not a format version", f"Write {VERSION_KEY} = {VERSION}.")
    if written > VERSION:
        raise _broken(
            path,
            f"it is written in format {written}, and this Rankdeck knows formats up to {VERSION}",
            "Update Rankdeck, or use a config file of this version.",
        )
    return {key: value for key, value in values.items() if key != VERSION_KEY}


def find_line(path: Path, key: str) -> int | None:
    """Find the line that sets `key` (with dashes or underscores), counted from 1."""
    pattern = re.compile(r"""\s*["']?""" + re.escape(key).replace("_", "[-_]") + r"""["']?\s*[:=]""")
    try:
        lines = read_utf8(path).splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((number for number, line in enumerate(lines, 1) if pattern.match(line)), None)


def written_number(path: Path, key: str, value: float) -> str:
    """Find a number's text in a file: the parsers take ``1.000`` for 1 before anybody can ask. Empty: not found."""
    name = re.escape(key).replace("_", "[-_]")
    pattern = re.compile(rf"""^[^#\n]*?(?<![\w-]){name}["']?\s*[:=]\s*(?P<number>[-+\d.eE]+)""", re.MULTILINE)
    try:
        texts = [found["number"] for found in pattern.finditer(read_utf8(path))]
        return next((text for text in texts if float(text) == value), "")
    except (OSError, ValueError):
        return ""


def _read_text(path: Path) -> str:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise _broken(path, "it is a folder", "Name the file in it.")
        if not stat.S_ISREG(status.st_mode):
            why = "it is not a regular file, and a pipe tells neither its format nor the lines that errors name"
            raise _broken(path, why, f"Write the settings to a file whose name ends in {' or '.join(SUFFIXES)}.")
        if status.st_size > MAX_FILE_BYTES:
            raise _broken(path, "it is larger than 1 MiB", "Name a config file, not a data file.")
        return decode_utf8(read_all(path)).removeprefix("\ufeff")
    except FileNotFoundError:
        raise _broken(path, "there is no such file", "Check the path given to --config.") from None
    except ParseError as error:
        raise _broken(path, str(error), "Save it as UTF-8.") from None
    except OSError as error:
        raise _broken(path, error.strerror or str(error), "Check that you may read this file.") from None
    except ValueError:  # a zero byte, or half a character
        raise _broken(path, "no file can have this name", "Check the path given to --config.") from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that stands there twice, as TOML does; of JSON's the last would count."""
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ParseError(f"it has {twice!r} twice")
    return dict(pairs)


def _parsed(path: Path, text: str, form: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(text)
    except ParseError as error:
        raise _broken(path, f"it cannot be read as {form}: {error}", "Correct that line.") from None


def _broken(path: Path, what: str, next_step: str) -> ConfigError:
    error = ConfigError("config", f"{path}: {what}.", next_step)
    error.title = "The config file cannot be used"
    return error


# --- out -------------------------------------------------------------------------------------------------


def to_toml(config: RunConfig) -> str:
    """Write every field as TOML, so that the file means the same in a later version with other defaults.

    TOML has no null: an empty field is ``""``. Raises `ConfigError` for a file name that is not UTF-8.
    """
    values, options = config.sorted_values()
    env = values.pop("env")
    for key, value in {**values, **env, **options}.items():
        _check_unicode(key, value)
    document: dict[str, Any] = {VERSION_KEY: VERSION, **_without_null(values)}
    document |= {heading: table for heading, table in (("env", env), ("options", _without_null(options))) if table}
    text: str = tomli_w.dumps(document)
    return text


def to_json(config: RunConfig) -> str:
    """Write every field as JSON, empty fields as null."""
    values, options = config.sorted_values()
    return json.dumps({VERSION_KEY: VERSION, **values, "options": options}, indent=2) + "\n"


def _without_null(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: "" if value is None else value for key, value in values.items()}


def _check_unicode(key: str, value: Any) -> None:
    try:
        json.dumps([key, value], ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ConfigError(
            key,
            f"{key} holds characters that are not Unicode: {value!r}.",
            "Rename the file so that its name is UTF-8.",
        ) from None
