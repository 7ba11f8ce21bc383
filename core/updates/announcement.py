"""Announcement of a release: what the address in Settings answers (docs/windows.md describes it)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urljoin, urlsplit

from core.errors import RankdeckError
from core.parsing import ParseError, parse_json
from core.records import Limits, RecordError, read_record

FORMAT: Final = "rankdeck-update"
VERSION: Final = 1
LARGEST_SETUP_BYTES: Final = 2 << 30
_RELEASE: Final = re.compile(r"\d{1,6}(?:\.\d{1,6}){1,3}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_THIS_PC: Final = ("127.0.0.1", "localhost", "::1")

Line = Annotated[str, Limits(0, 1000)]


class UpdateError(RankdeckError):
    """An update that cannot be looked for, or cannot be had."""

    title = "The update could not be downloaded"


@dataclass(frozen=True, slots=True)
class Setup:
    """The program that installs a release.

    Attributes:
        url: Where it is; may be relative to the address.
        sha256: Of its bytes.
        bytes: How many.
    """

    url: Annotated[str, Limits(1, 2000)]
    sha256: Annotated[str, Limits(64, 64)]
    bytes: Annotated[int, Limits(1, LARGEST_SETUP_BYTES)]


@dataclass(frozen=True, slots=True)
class Announcement:
    """The newest release.

    Attributes:
        release: Its version: "0.2.0".
        news: What is new, a line each.
        setup: Installs it under Windows; None where none is offered.
    """

    release: Annotated[str, Limits(1, 32)]
    news: Annotated[tuple[Line, ...], Limits(0, 50)] = ()
    setup: Setup | None = None


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
        announcement = read_record(Announcement, document)
    except (ParseError, RecordError) as error:
        raise _unreadable(str(error)) from None
    if _RELEASE.fullmatch(announcement.release) is None:
        raise _unreadable(f"{announcement.release!r} is not a version such as 0.2.0")
    return Announcement(announcement.release, announcement.news, _whole(announcement.setup, address))


def is_newer(release: str, than: str) -> bool:
    """Whether a release is newer than a version; what follows its numbers ("0.2.0.dev1") does not count."""
    return _numbers(release) > _numbers(than)


def check_address(text: str) -> str:
    """An address that may be asked.

    Raises:
        UpdateError: It is none, or what is sent over it could be changed on the way.
    """
    title = "The address of updates cannot be used"
    try:
        parts = urlsplit(text.strip())
        _ = parts.port, (parts.hostname or "").encode("idna")
    except ValueError:  # "https://[", a port beyond 65535, a name that no host can have
        raise UpdateError(f"{text.strip()!r:.200} is not an address.", "Check it for typos.", title=title) from None
    if parts.username or parts.password:
        raise UpdateError("The address holds a password.", "Enter it without one.", title=title)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _THIS_PC)
    if not is_safe or not parts.hostname:
        raise UpdateError(
            f"{text.strip()!r} does not begin with https://, so what it sends could be changed on the way.",
            "Enter an address that begins with https://.",
            title=title,
        )
    return text.strip()


def _whole(setup: Setup | None, address: str) -> Setup | None:
    """The setup with its whole URL."""
    if setup is None:
        return None
    if _SHA256.fullmatch(setup.sha256) is None:
        raise _unreadable("setup.sha256 is not 64 digits of 0 to 9 and a to f")
    try:
        url = urljoin(address, setup.url)
    except ValueError:
        raise _unreadable("setup.url is not an address") from None
    return Setup(check_address(url), setup.sha256, setup.bytes)


def _numbers(version: str) -> tuple[int, ...]:
    found = _RELEASE.match(version)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    return tuple([*numbers, 0, 0, 0, 0][:4])


def _unreadable(why: str) -> UpdateError:
    return UpdateError(
        f"The answer cannot be read: {why}.",
        "Check the address of updates in Settings.",
        title="The check for updates failed",
    )
