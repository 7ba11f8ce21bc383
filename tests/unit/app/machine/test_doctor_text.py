"""Texts of the page that checks this machine."""

from __future__ import annotations

from typing import get_args

from app.machine.doctor_text import FIXES, GROUPS, LEVELS, spoken_text, worst
from core.doctor import finding
from core.doctor.finding import Fix, Level, Topic

TOPIC = Topic("x", "Sleep", "This machine", "A computer that sleeps trains nothing.")


def test_a_line_is_spoken_whole() -> None:
    found = TOPIC.warn("after 5 minutes", "Turn it off.")
    expected = "Sleep: limited. after 5 minutes. A computer that sleeps trains nothing. Turn it off."
    assert spoken_text(found) == expected


def test_a_group_has_the_edge_of_its_worst_finding() -> None:
    ok, warn, fail = TOPIC.ok("a"), TOPIC.warn("b", "c"), TOPIC.fail("d", "e")
    assert [worst(found) for found in ([ok], [ok, warn], [warn, fail], [])] == ["", "warning", "error", ""]


def test_every_fix_has_a_button_and_every_level_a_look() -> None:
    assert set(FIXES) == set(get_args(Fix)) - {""} and all(FIXES.values())
    assert set(LEVELS) == set(get_args(Level))
    assert set(GROUPS) == set(finding.GROUPS)
