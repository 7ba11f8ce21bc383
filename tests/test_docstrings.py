"""Module docstrings: the term first, then the reason, so that a list of modules can be read."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = ("app", "core", "workers", "installer")
QUESTIONS = ("What", "Which", "How", "Where", "When", "Whether")


def test_module_docstrings_begin_with_a_term() -> None:
    """ "Hang watch: reports ranks that …", not "When a rank is said to hang"."""
    found = []
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            if docstring.partition(" ")[0] in QUESTIONS:
                found.append(f"{path.relative_to(ROOT).as_posix()}: {docstring.splitlines()[0]}")
    assert found == [], "say the term first, then the reason"
