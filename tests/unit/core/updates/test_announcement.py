"""What a server of updates may answer, and which addresses are asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.updates.announcement import UpdateError, check_address, is_newer, read_announcement

ADDRESS = "https://example.org/rankdeck/update.json"
SETUP = {"url": "Rankdeck-Setup-0.2.0.exe", "sha256": "a" * 64, "bytes": 70_000_000}


def answer(**changes: Any) -> bytes:
    document = {"format": "rankdeck-update", "version": 1, "release": "0.2.0", "news": ["Faster."], "setup": SETUP}
    return json.dumps(document | changes).encode()


def test_a_setup_may_lie_beside_its_announcement() -> None:
    found = read_announcement(answer(), ADDRESS)
    assert found.release == "0.2.0" and found.news == ("Faster.",) and found.setup is not None
    assert found.setup.url == "https://example.org/rankdeck/Rankdeck-Setup-0.2.0.exe"
    assert read_announcement(answer(setup=None, later="ignored"), ADDRESS).setup is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>Sign in</html>",
        b"[]",
        answer(format="other"),
        answer(version=2),
        answer(release="newest"),
        answer(release="../../x"),
        answer(news="text"),
        answer(news=["x"] * 51),
        answer(setup=SETUP | {"sha256": "A" * 64}),
        answer(setup=SETUP | {"bytes": 0}),
        answer(setup=SETUP | {"bytes": 1 << 40}),
        answer(setup=SETUP | {"url": "http://example.org/x.exe"}),
        answer(setup=SETUP | {"url": "file:///c:/x.exe"}),
    ],
)
def test_what_cannot_be_trusted_is_refused(data: bytes) -> None:
    with pytest.raises(UpdateError):
        read_announcement(data, ADDRESS)


@pytest.mark.parametrize(
    ("release", "than", "newer"),
    [
        ("0.2.0", "0.1.0", True),
        ("0.10", "0.9.9", True),
        ("0.1.0", "0.1.0", False),
        ("0.1", "0.1.0", False),
        ("0.1.0", "0.2.0.dev1", False),
        ("1.0.0", "unknown", True),
        ("", "0.1.0", False),
    ],
)
def test_numbers_are_compared(release: str, than: str, newer: bool) -> None:
    assert is_newer(release, than) is newer


def test_addresses_are_safe_on_the_way() -> None:
    for address in (ADDRESS, "http://127.0.0.1:8000/u", "http://localhost/u", f"  {ADDRESS} "):
        assert check_address(address) == address.strip()
    for address in (
        "",
        "example.org",
        "http://example.org/u",
        "ftp://example.org",
        "https://a:b@example.org",
        "https://",
        "https://[",
        "https://]",
        "https://[::1",
        "https://a:99999/u",
        "https://a:b/u",
        f"https://{'a' * 70}.org",
        "https://a..b",
    ):
        with pytest.raises(UpdateError):
            check_address(address)


@pytest.mark.parametrize("url", ["https://[", "//[", "http://[x]/", "https://a:99999/Setup.exe"])
def test_a_setup_of_no_address_is_refused(url: str) -> None:
    with pytest.raises(UpdateError):
        read_announcement(answer(setup={**SETUP, "url": url}), ADDRESS)
