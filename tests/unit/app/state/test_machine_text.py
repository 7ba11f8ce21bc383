"""Texts about other machines."""

from __future__ import annotations

from app.state.machine_text import findings_text


def finding(level: str, name: str, next_step: str = "") -> dict[str, str]:
    return {"level": level, "name": name, "text": "as it is", "next_step": next_step}


def test_problems_come_first_with_what_to_do() -> None:
    found = [
        finding("ok", "A"), finding("not_tried", "B", "Try."), finding("fail", "C", "Mend it."), finding("warn", "D")
    ]  # fmt: skip
    assert findings_text(found).splitlines() == [
        "✕ C: as it is. Mend it.", "⚠ D: as it is", "✓ A: as it is", "– B: as it is"
    ]  # fmt: skip
