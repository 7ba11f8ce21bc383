"""Texts about other machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from core.errors import sentences

_SIGNS: Final = {"fail": "✕", "warn": "⚠", "ok": "✓", "not_tried": "–"}
"""In the order in which they are shown."""


def findings_text(findings: Sequence[Mapping[str, str]]) -> str:
    """The doctor's findings on another machine: problems first, each with what to do; then what works.

    Args:
        findings: As `core.doctor.finding.Finding.as_dict` gives them.
    """
    ordered = sorted(findings, key=lambda one: list(_SIGNS).index(one["level"]))
    return "\n".join(_line(finding) for finding in ordered)


def _line(finding: Mapping[str, str]) -> str:
    level = finding["level"]
    step = finding["next_step"] if level in ("fail", "warn") else ""
    return (
        sentences(f"{_SIGNS[level]} {finding['name']}: {finding['text']}", step)
        if step
        else (f"{_SIGNS[level]} {finding['name']}: {finding['text']}")
    )
