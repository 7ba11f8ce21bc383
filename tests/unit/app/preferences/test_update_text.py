"""What a server of updates may answer, which addresses are asked, and what Settings says of it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from app.preferences.update_text import (
    CHECK_EVERY_S,
    NO_CHECK,
    UpdateCheck,
    UpdateError,
    check_address,
    check_from,
    check_text,
    is_newer,
    read_announcement,
)

NOW = 1_790_000_000.0
ADDRESS = "https://example.org/rankdeck/update.json"


def test_a_check_is_kept_and_read_back() -> None:
    check = UpdateCheck(NOW, "0.2.0", "https://example.org")
    assert check_from(asdict(check)) == check
    for damaged in ({}, {"checked": "now", "release": "", "problem": ""}):
        assert check_from(damaged) == NO_CHECK


def test_a_check_is_due_after_a_day_and_when_the_clock_was_set_back() -> None:
    check = UpdateCheck(NOW, "0.1.0", "")
    assert NO_CHECK.is_due(NOW) and not check.is_due(NOW + CHECK_EVERY_S - 1)
    assert check.is_due(NOW + CHECK_EVERY_S) and check.is_due(NOW - 10 * 365 * 86_400)


def test_settings_say_what_the_last_check_found() -> None:
    assert "while this is empty" in check_text(NO_CHECK, "0.1.0", NOW, has_address=False)
    assert check_text(NO_CHECK, "0.1.0", NOW, has_address=True).startswith("Not checked yet.")
    assert check_text(UpdateCheck(NOW, "0.2.0"), "0.1.0", NOW, True).endswith("Rankdeck 0.2.0 is available.")
    assert check_text(UpdateCheck(NOW, "0.1.0"), "0.1.0", NOW, True).endswith("0.1.0 is the newest version.")
    failed = check_text(UpdateCheck(NOW, problem="example.org was not found."), "0.1.0", NOW, True)
    assert failed.endswith("example.org was not found.")


def answer(**changes: Any) -> bytes:
    document = {"format": "rankdeck-update", "version": 1, "release": "0.2.0", "news": ["Faster."], "page": "new.html"}
    return json.dumps(document | changes).encode()


def test_a_page_may_lie_beside_its_announcement() -> None:
    found = read_announcement(answer(setup={"url": "of an earlier form"}), ADDRESS)
    assert (found.release, found.news, found.page) == ("0.2.0", ("Faster.",), "https://example.org/rankdeck/new.html")
    assert read_announcement(answer(page=""), ADDRESS).page == ""


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
        answer(page="http://example.org/x"),
        answer(page="file:///c:/x.exe"),
        answer(page="https://["),
        answer(page="//["),
        answer(page="https://a:99999/Setup.exe"),
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
