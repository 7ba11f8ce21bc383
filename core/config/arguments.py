"""Splits a line into arguments and joins them again, alike on every platform.

Quotes hold an argument together and a backslash is only a backslash, so that ``C:\\data`` needs no care.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

from core.errors import ConfigError


def split_arguments(text: str, option: str = "arguments") -> list[str]:
    """Split a line into arguments.

    Blanks separate; ``"…"``, and ``'…'`` at an argument's beginning or behind ``=``, hold together. Before a double
    quote backslashes count as in Windows programs (``\\"`` is a quote, ``\\\\"`` a backslash and the end); elsewhere
    they are ordinary letters. `join_arguments` is the inverse.

    Raises:
        ConfigError: A quote is never closed.
    """
    arguments: list[str] = []
    word: list[str] | None = None
    quote = ""
    index = 0
    while index < len(text):
        sign = text[index]
        if quote == "'":
            if sign == "'":
                quote = ""
            else:
                _grown(word).append(sign)
        elif sign == "\\":
            run = len(text[index:]) - len(text[index:].lstrip("\\"))
            before_quote = text[index + run : index + run + 1] == '"'
            word = _grown(word)
            word.append("\\" * (run // 2 if before_quote else run))
            index += run
            if before_quote and run % 2:
                word.append('"')
                index += 1
            continue
        elif sign == '"':
            word = _grown(word)
            quote = "" if quote else '"'
        elif sign == "'" and not quote and (not word or "".join(word).endswith("=")):
            word, quote = _grown(word), "'"
        elif sign.isspace() and not quote:
            if word is not None:
                arguments.append("".join(word))
            word = None
        else:
            word = _grown(word)
            word.append(sign)
        index += 1
    if quote:
        raise ConfigError(option, f"A quote is never closed in: {text}", f"Add the missing {quote}")
    return arguments if word is None else [*arguments, "".join(word)]


def join_arguments(arguments: Sequence[str]) -> str:
    """Join arguments into a line that `split_arguments` reads back."""
    return " ".join(quoted(word) if re.search(r"[\s\"']", word) or not word else word for word in arguments)


def quoted(word: str) -> str:
    """Quote a word by Windows' rules: a leading blank makes list2cmdline quote any word."""
    return '"' + subprocess.list2cmdline([" " + word])[2:]


def _grown(word: list[str] | None) -> list[str]:
    return [] if word is None else word
