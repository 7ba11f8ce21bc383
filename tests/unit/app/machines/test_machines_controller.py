"""Texts about other machines."""

from __future__ import annotations

from typing import Any

from app.machines.machines_controller import findings_text
from core.machines.answers import FindingThere


def finding(level: Any, name: str, next_step: str = "") -> FindingThere:
    return FindingThere(name, name, "group", level, "as it is", next_step=next_step)


def test_problems_come_first_with_what_to_do() -> None:
    found = [
        finding("ok", "A"), finding("not_tried", "B", "Try."), finding("fail", "C", "Mend it."), finding("warn", "D")
    ]  # fmt: skip
    assert findings_text(found).splitlines() == [
        "✕ C: as it is. Mend it.", "⚠ D: as it is", "✓ A: as it is", "– B: as it is"
    ]  # fmt: skip
