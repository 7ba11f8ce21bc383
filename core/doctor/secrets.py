"""Secrets in texts that are shown to others: keys, tokens and passwords, by their names and forms.

Names of people and machines stay: who saves diagnostics sees each file before and takes out what they like.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

SECRET: Final = "<secret>"
_SECRETS: Final = (
    r"\b(?:hf|ghp|gho|ghs|ghu|glpat|pypi|xox[abprs]|sk|rk)[-_][\w-]{16,}",
    r"\bgithub_pat_\w{20,}",
    r"\bAKIA[0-9A-Z]{16}\b",
    r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
    r"(?<=://)[^\s/@:\"']{1,100}:[^\s/@\"']{1,200}(?=@)",
    r"(?<=Bearer )[\w.~+/=-]+",
)
_SECRET_WORD: Final = (
    r"(?:token(?!i[sz]|s?_(?:per|seen|count|cache))|secret|passw(?:or)?d|passphrase|(?<=_)pwd|api[_-]?key|access[_-]?key"
    r"|private[_-]?key|credential|authorization)"
)
_SCHEME: Final = r"(?:(?:basic|bearer|digest|token|negotiate)[ ]+)?"
_VALUE: Final = r"(?:\\\"[^\"\\]*\\\"|\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s\"',;}\]\\]+)"
_KEYED_SECRET: Final = (
    rf"(?P<keyed>(?<![\w-])[\w-]{{0,40}}?{_SECRET_WORD}[\w-]{{0,40}}[\\\"']*\s*[:=]\s*{_SCHEME}){_VALUE}"
)
_FLAG_SECRET: Final = (
    # --password X, "--hf-token", "X"; but not --tokens byte, which is a setting
    r"(?P<flag>(?<![\w-])--?(?:[\w]+-)*"
    r"(?:token|secret|passw(?:or)?d|passphrase|api-?key|access-?key|credentials?|auth|pass)"
    rf"(?:-[\w-]+)?[\\\"']{{0,2}}[,\s]\s*){_VALUE}"
    r"|(?P<login>\b(?:sshpass|mysql|mysqldump|mariadb|redis-cli|smbclient|docker\s+login|curl|wget|ftp)\b[^\n|;&]{0,200}?"
    r"\s-{1,2}(?:(?:p|P|a|pass)[ =]?|(?:u|U|user)[ =]?(?=[^\s:%]{1,100}[:%])))[^\s\"'-][^\s\"']*"
)
_BODY: Final = r"(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/=]{16,}+(?:\s|\\n|\\r)++)++"
_KEY: Final = r"PRIVATE KEY(?: BLOCK)?-----"
# Over several lines; one whose end is cut off reaches to the end of the text.
_KEY_BLOCK: Final = re.compile(
    rf"(?P<begin>-----BEGIN [A-Z0-9 ]{{0,40}}{_KEY})(?:.*?(?P<end>-----END [A-Z0-9 ]{{0,40}}{_KEY})|.*)"
    rf"|{_BODY}[A-Za-z0-9+/=]{{0,16}}(?:\s|\\n|\\r)*+(?P<cut>-----END [A-Z0-9 ]{{0,40}}{_KEY})"
    rf"|(?P<putty>Private-Lines:\s*\d+(?:\s|\\n|\\r)++){_BODY}",
    re.DOTALL,
)
_NUMERIC: Final = re.compile(r"[:=]\s*-?(?:\d[\d._e+-]*|true|false|null|none)$", re.IGNORECASE)
# A port, a count or a switch.
_FLAG_NUMBER: Final = re.compile(r"[\s=,][\"']?(?:\d{1,6}|true|false|null|none)[\"']?$", re.IGNORECASE)
_PATTERN: Final = re.compile(
    f"(?P<secret>{'|'.join(_SECRETS)})|(?P<keyed_secret>{_KEYED_SECRET})|(?P<flag_secret>{_FLAG_SECRET})", re.IGNORECASE
)
_SECRET_VARIABLE: Final = re.compile(r"token|secret|passw|key|auth|credential", re.IGNORECASE)
# Letters: a shorter value of such a variable is a switch, such as "1" or "always".
_LEAST_SECRET: Final = 8


def without_secrets(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Replace secrets by `SECRET`, also the values of variables whose names speak of secrets."""
    for name, value in environment.items():
        if _SECRET_VARIABLE.search(name) and len(value) >= _LEAST_SECRET and not value.startswith(("/", "\\")):
            text = text.replace(value, SECRET)
    text = _KEY_BLOCK.sub(_without_key, text)
    # A search holds Python's lock: the window draws between two lines.
    lines = text.splitlines(keepends=True)
    return "".join(_PATTERN.sub(_replaced, line) for line in lines)


def _replaced(found: re.Match[str]) -> str:
    whole = found[0]
    if found["secret"] is not None:
        return SECRET
    if found["keyed_secret"] is not None:
        return whole if _NUMERIC.search(whole) else f"{found['keyed']}{_like(whole, SECRET)}"
    before = found["flag"] or found["login"]
    return whole if _FLAG_NUMBER.search(whole) else f"{before}{_like(whole, SECRET)}"


def _without_key(found: re.Match[str]) -> str:
    begin, end = found["begin"] or found["putty"] or "", found["end"] or found["cut"] or ""
    return f"{begin}{SECRET}{end}" if end else f"{begin}{SECRET}\n"


def _like(whole: str, value: str) -> str:
    """Put `value` into the quotes of the text that it replaces, so that JSON and TOML stay readable."""
    end = re.search(r"\\?[\"']$", whole)
    return f"{end[0]}{value}{end[0]}" if end else value
