"""Texts on updates."""

from __future__ import annotations

from app.state.update_text import CHECK_EVERY_S, NO_CHECK, UpdateCheck, check_from, check_text, size_text, why_not_here
from core.updates.announcement import Announcement, Setup

NOW = 1_790_000_000.0
OFFERED = Announcement("0.2.0", ("Faster.",), Setup("https://example.org/x.exe", "a" * 64, 68_000_000))


def test_a_check_is_kept_and_read_back() -> None:
    check = UpdateCheck(NOW, "0.2.0", "")
    assert check_from(check.as_kept()) == check
    for damaged in ({}, {"checked": "now", "release": "", "problem": ""}, {"checked": 1.0}):
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
    failed = check_text(UpdateCheck(NOW, "", "example.org was not found."), "0.1.0", NOW, True)
    assert failed.endswith("example.org was not found.")


def test_size_and_reason() -> None:
    assert size_text(OFFERED, "0.1.0") == "You have 0.1.0. The setup has 68 MB."
    assert size_text(Announcement("0.2.0"), "0.1.0") == "You have 0.1.0."
    assert why_not_here(OFFERED, is_installed=True) == ""
    assert "git or pip" in why_not_here(OFFERED, is_installed=False)
    assert "no setup" in why_not_here(Announcement("0.2.0"), is_installed=True)
