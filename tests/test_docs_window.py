"""What docs name in italics, as *Stop*, is a text of the program, so that readers find it in the window."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.test_docs import ROOT, name_of

PAGES: Final = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/guides/*.md")])
NOT_OURS: Final = {
    "Hierarchical Reasoning Model": "the title of a paper",
    "Outliers in process modeling and identification": "the title of a paper",
    "Robust Locally Weighted Regression": "the title of a paper",
    "Settings → Optional features → OpenSSH Client": "a page of Windows",
    "Unicode Text": "a format of Excel",
}
COMPOSED: Final = {
    "DDP with load balancing": "by app.launch.resume_choices",
    "No connection to gpubox": "by core.run_folder.remote_run",
}


def texts_of_the_program() -> tuple[set[str], dict[str, int]]:
    """Whole texts, and patterns of those with values in them, with the letters that are given. Recipes name fields."""
    whole: set[str] = set()
    patterns: dict[str, int] = {}
    for folder in ("app", "core", "workers"):
        for path in ROOT.joinpath(folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    whole.add(_plain(node.value))
                elif isinstance(node, ast.JoinedStr):
                    given = [_plain(str(part.value)) for part in node.values if isinstance(part, ast.Constant)]
                    pattern = "".join(
                        re.escape(_plain(str(part.value))) if isinstance(part, ast.Constant) else ".+"
                        for part in node.values
                    )
                    patterns[pattern] = len("".join(given))
        for path in ROOT.joinpath(folder).rglob("*.toml"):
            whole.update(re.findall(r'"([^"\n]*)"', path.read_text(encoding="utf-8")))
    return whole, patterns


def _plain(text: str) -> str:
    return text.replace("&", "").rstrip(":")


def names_in_italics(page: Path) -> Iterator[str]:
    """Each *Name* of a page; not **bold** and not in code."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"`[^`]*`", "`", text)
    for found in re.finditer(r"(?<![*\w])\*(?!\*)([A-Z][^*`|]*?)\*(?!\*)", text):
        yield " ".join(found[1].split())


def test_names_in_italics_are_texts_of_the_program() -> None:
    whole, patterns = texts_of_the_program()
    named = {(name_of(page), name) for page in PAGES for name in names_in_italics(page)}
    assert len(named) > 60
    missing = {
        (page, name)
        for page, name in named
        if name not in whole
        and not any(given > len(name) / 2 and re.fullmatch(pattern, name) for pattern, given in patterns.items())
    }
    assert {name for _, name in missing} == NOT_OURS.keys() | COMPOSED.keys(), missing
