"""Updates: what a server announces (docs/windows.md describes it), and what Settings says of the last check."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final
from urllib.parse import urljoin, urlsplit

from core.errors import RankdeckError
from core.formatting import day_time
from core.parsing import ParseError, parse_json
from core.records import Limits, RecordError, read_record

FORMAT: Final = "rankdeck-update"
VERSION: Final = 1
# About once a day, whenever the window is opened.
CHECK_EVERY_S: Final = 20 * 3600.0
_RELEASE: Final = re.compile(r"\d{1,6}(?:\.\d{1,6}){1,3}")
_THIS_PC: Final = ("127.0.0.1", "localhost", "::1")

Line = Annotated[str, Limits(0, 1000)]


class UpdateError(RankdeckError):
    """Nothing is known of a newer version."""

    title = "The check for updates failed"


@dataclass(frozen=True, slots=True)
class Announcement:
    """The newest release.

    Attributes:
        release: Its version: "0.2.0".
        news: What is new, a line each.
        page: Where it can be had; may be relative to the address. Empty: not said.
    """

    release: Annotated[str, Limits(1, 32)]
    news: Annotated[tuple[Line, ...], Limits(0, 50)] = ()
    page: Annotated[str, Limits(0, 2000)] = ""


@dataclass(frozen=True, slots=True)
class UpdateCheck:
    """The last check.

    Attributes:
        checked: Unix seconds; 0: there was none.
        release: The newest version; empty if the check failed.
        page: Where it can be had.
        problem: Why it failed; empty if it did not.
    """

    checked: float = 0.0
    release: str = ""
    page: str = ""
    problem: str = ""

    def is_due(self, now: float) -> bool:
        """Whether to ask the server again; also where the clock has been set back."""
        return not 0 <= now - self.checked < CHECK_EVERY_S


NO_CHECK: Final = UpdateCheck()


def read_announcement(data: bytes, address: str) -> Announcement:
    """Reads an answer.

    Args:
        data: What came.
        address: Where it came from.

    Raises:
        UpdateError: It is not an announcement, or one of a newer format.
    """
    try:
        document = parse_json(data)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise _unreadable(f'it does not say "format": "{FORMAT}"')
        if document.get("version") != VERSION:
            raise _unreadable(f"its version is {document.get('version')!r}, and this Rankdeck reads {VERSION}")
        found = read_record(Announcement, document)
    except (ParseError, RecordError) as error:
        raise _unreadable(str(error)) from None
    if _RELEASE.fullmatch(found.release) is None:
        raise _unreadable(f"{found.release!r} is not a version such as 0.2.0")
    try:
        page = urljoin(address, found.page) if found.page else ""
    except ValueError:
        raise _unreadable("page is not an address") from None
    return Announcement(found.release, found.news, check_address(page) if page else "")


def is_newer(release: str, than: str) -> bool:
    """Whether a release is newer than a version; what follows its numbers ("0.2.0.dev1") does not count."""
    return _numbers(release) > _numbers(than)


def check_address(text: str) -> str:
    """An address that may be asked or opened.

    Raises:
        UpdateError: It is none, or what is sent over it could be changed on the way.
    """
    title, text = "The address of updates cannot be used", text.strip()
    try:
        parts = urlsplit(text)
        _ = parts.port, (parts.hostname or "").encode("idna")
    except ValueError:  # "https://[", a port beyond 65535, a name that no host can have
        raise UpdateError(f"{text!r:.200} is not an address.", "Check it for typos.", title=title) from None
    if parts.username or parts.password:
        raise UpdateError("The address holds a password.", "Enter it without one.", title=title)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _THIS_PC)
    if not is_safe or not parts.hostname:
        raise UpdateError(
            f"{text!r} does not begin with https://, so what it sends could be changed on the way.",
            "Enter an address that begins with https://.",
            title=title,
        )
    return text


def check_from(kept: Mapping[str, Any]) -> UpdateCheck:
    """What settings keep of one; no check where that is damaged."""
    try:
        return read_record(UpdateCheck, dict(kept))
    except RecordError:
        return NO_CHECK


def check_text(check: UpdateCheck, version: str, now: float, has_address: bool) -> str:
    """A line for Settings: when it was checked, and with which result."""
    if not has_address:
        return "Nothing is checked while this is empty. A check sends one request for this address and nothing else."
    if not check.checked:
        return "Not checked yet. A check sends one request for this address and nothing else."
    when = day_time(check.checked, now)
    if check.problem:
        return f"Checked {when}. {check.problem}"
    if is_newer(check.release, version):
        return f"Checked {when}. Rankdeck {check.release} is available."
    return f"Checked {when}. Rankdeck {version} is the newest version."


def _numbers(version: str) -> tuple[int, ...]:
    found = _RELEASE.match(version)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    return tuple([*numbers, 0, 0, 0, 0][:4])


def _unreadable(why: str) -> UpdateError:
    return UpdateError(f"The answer cannot be read: {why}.", "Check the address of updates in Settings.")
