"""Redaction of what names a person or a machine: user name, home folder, machine name, addresses, tokens. Pure.

All patterns are tried at once, so what stands in for a name is never searched again: a user who is called "machine"
does no harm. A letter of a name matches in each form in which programs write it: itself in either case, composed or
not, percent-encoded, and escaped as in JSON or Python.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

HOME: Final = "<home>"
USER: Final = "<user>"
MACHINE: Final = "<machine>"
ADDRESS: Final = "<address>"
SECRET: Final = "<secret>"
MAIL: Final = "<e-mail>"
_SEPARATOR: Final = r"(?:[\\/]|%5C|%2F)+"
_SHORT: Final = 2
"""A name of so few letters is a word or a variable almost everywhere: it is replaced only where a name belongs."""
_ESCAPED: Final = r"(?<=%[0-9a-f]{2})|(?<=\\[nrt])"
"""Before a word: a percent-encoded character, or an escaped line break."""
_WORD: Final = r"[^\\/\s\"'<>:|?*%,;)\]}]+"
_ANY_HOME: Final = (
    rf"(?<=Users){_SEPARATOR}(?!<)(?:[^\\/\"'<>:|?*%\r\n]{{1,40}}(?=[\\/])|{_WORD})"
    rf"|(?<=home){_SEPARATOR}(?!<){_WORD}"
)
"""Folders of people who are not known. Those below Users often have two names, so all up to the next slash is one."""
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
_KEY_BLOCK: Final = re.compile(
    rf"(?P<begin>-----BEGIN [A-Z0-9 ]{{0,40}}{_KEY})(?:.*?(?P<end>-----END [A-Z0-9 ]{{0,40}}{_KEY})|.*)"
    rf"|{_BODY}[A-Za-z0-9+/=]{{0,16}}(?:\s|\\n|\\r)*+(?P<cut>-----END [A-Z0-9 ]{{0,40}}{_KEY})"
    rf"|(?P<putty>Private-Lines:\s*\d+(?:\s|\\n|\\r)++){_BODY}",
    re.DOTALL,
)
"""The body of a private key, over several lines; one whose end is cut off reaches to the end of the text."""
_NUMERIC: Final = re.compile(r"[:=]\s*-?(?:\d[\d._e+-]*|true|false|null|none)$", re.IGNORECASE)
_FLAG_NUMBER: Final = re.compile(r"[\s=,][\"']?(?:\d{1,6}|true|false|null|none)[\"']?$", re.IGNORECASE)
"""A port, a count or a switch."""
_MAC: Final = (
    r"(?<![\w:-])[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}(?![\w:-])|(?<![\w.])[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}(?![\w.])"
)
_IPV4: Final = r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)"
_IPV6: Final = r"(?<![\w:.])(?:[0-9a-f]{0,4}:){2,7}(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]{0,4})(?![\w:])"
_MAIL: Final = r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+"
_GPU: Final = r"\b(?P<gpu>(?:GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4,12}){4})"


class Redactor:
    """Takes names out of texts; the same GPU keeps the same number in all of them.

    Args:
        users: What the person is called by the system.
        homes: Their home folders, in any form.
        machines: What the machine is called.
        secrets: Values that must not be shown, such as those of variables that hold keys.
    """

    def __init__(
        self,
        users: Iterable[str] = (),
        homes: Iterable[str] = (),
        machines: Iterable[str] = (),
        secrets: Iterable[str] = (),
    ) -> None:
        self._gpus: dict[str, str] = {}
        groups = {
            "secret": "|".join([*(_any_form(value) for value in _longest_first(secrets)), *_SECRETS]),
            "keyed_secret": _KEYED_SECRET,
            "flag_secret": _FLAG_SECRET,
            "mail": _MAIL,
            "home": "|".join(_home(path) for path in _longest_first(homes)),
            "any_home": _ANY_HOME,
            "gpu_uuid": _GPU,
            "mac": _MAC,
            "ipv6": _IPV6,
            "ipv4": _IPV4,
            "machine": "|".join(_name(name) for name in _longest_first(machines)),
            "user": "|".join(_name(name) for name in _longest_first(users)),
        }
        alternatives = "|".join(f"(?P<{name}>{pattern})" for name, pattern in groups.items() if pattern)
        self._pattern = re.compile(alternatives, re.IGNORECASE)

    def redact(self, text: str) -> str:
        """`text` with everything replaced that names the person or the machine."""
        text = _KEY_BLOCK.sub(_without_key, text)
        lines = text.splitlines(keepends=True)  # a search holds Python's lock: the window draws between two lines
        return "".join(self._pattern.sub(self._replaced, line) for line in lines)

    def _replaced(self, found: re.Match[str]) -> str:
        whole, group = found[0], next(name for name, value in found.groupdict().items() if value is not None)
        if group in ("secret", "mac", "mail", "home", "machine", "user"):
            return {"secret": SECRET, "mac": ADDRESS, "mail": MAIL, "home": HOME, "machine": MACHINE, "user": USER}[
                group
            ]
        if group == "keyed_secret":
            return whole if _NUMERIC.search(whole) else f"{found['keyed']}{_like(whole, SECRET)}"
        if group == "flag_secret":
            before = found["flag"] or found["login"]
            return whole if _FLAG_NUMBER.search(whole) else f"{before}{_like(whole, SECRET)}"
        if group == "any_home":
            name = re.sub(_SEPARATOR, "", whole, flags=re.IGNORECASE)
            return whole if name.lower() in _SHARED_HOMES else whole.replace(name, USER)
        if group == "gpu_uuid":
            return self._gpus.setdefault(whole.lower(), f"GPU-<{len(self._gpus)}>")
        return whole if _is_harmless(whole) else ADDRESS


_SHARED_HOMES: Final = ("public", "default", "all users", "shared")


def _without_key(found: re.Match[str]) -> str:
    begin, end = found["begin"] or found["putty"] or "", found["end"] or found["cut"] or ""
    return f"{begin}{SECRET}{end}" if end else f"{begin}{SECRET}\n"


def _like(whole: str, value: str) -> str:
    """`value` in the quotes that what it replaces had, so that JSON and TOML stay readable."""
    end = re.search(r"\\?[\"']$", whole)
    return f"{end[0]}{value}{end[0]}" if end else value


def _is_harmless(address: str) -> bool:
    """No address at all (a version, a time), or one that every machine has."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return True
    return found.is_loopback or found.is_unspecified


def _longest_first(values: Iterable[str]) -> list[str]:
    return sorted({value for value in values if value.strip()}, key=len, reverse=True)


def _home(path: str) -> str:
    """A folder's path with any separators, each as often as it likes, and each part in any form."""
    parts = [part for part in re.split(r"[\\/]+", path) if part]
    if not parts:
        return r"(?!)"
    drive = re.fullmatch(r"([A-Za-z]):", parts[0])
    first = rf"(?:{drive[1]}(?::|%3A|\|)|[\\/]{drive[1]}|[\\/]mnt[\\/]{drive[1]})" if drive else _any_form(parts[0])
    start = "" if drive else _SEPARATOR if path[0] in "\\/" else ""
    body = _SEPARATOR.join([first, *(_any_form(part) for part in parts[1:])])
    return rf"(?:(?<!\w)|{_ESCAPED}){start}{body}(?!\w)"


def _name(name: str) -> str:
    """A name as a word of its own; a very short one only as a part of a path, before an @, or quoted alone."""
    form = _any_form(name)
    if len(name) > _SHORT:
        return rf"(?:(?<![^\W_])|{_ESCAPED}){form}(?![^\W_])"
    ends = rf"(?={_SEPARATOR}|[\"'\s]|$)"
    return rf"(?<=[\\/]){form}{ends}|(?<![^\W_]){form}(?=@)|(?<=[@\"']){form}(?=[\"'\s:]|$)"


def _any_form(text: str) -> str:
    return "".join(rf"(?:{'|'.join(dict.fromkeys(_forms(letter)))})" for letter in unicodedata.normalize("NFC", text))


def _forms(letter: str) -> Iterator[str]:
    """A letter as programs write it."""
    for case in dict.fromkeys((letter, letter.lower(), letter.upper())):
        yield re.escape(case)
        if len(case) > 1:
            continue
        if case == " ":
            yield r"\+"
        if not case.isalnum() or not case.isascii():
            yield from ("".join(f"%{byte:02X}" for byte in case.encode(code, "ignore")) or "(?!)" for code in _CODES)
            yield rf"\\+u{ord(case):04x}"
            yield rf"\\+x{ord(case):02x}(?![0-9a-f])"
            yield "".join(rf"\\+x{byte:02x}" for byte in case.encode())
            decomposed = unicodedata.normalize("NFD", case)
            if decomposed != case:
                yield re.escape(decomposed)


_CODES: Final = ("utf-8", "latin-1")
