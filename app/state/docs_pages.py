"""Pages of the documentation: their titles, their order, and where a link leads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
FIRST: Final = (
    "getting-started", "command-line", "data", "modes", "charts", "resume-and-ledger", "recipes", "scripts", "export",
)  # fmt: skip
"""These come first, in this order; all others follow by title."""


@dataclass(frozen=True, slots=True)
class DocsPage:
    """One page.

    Attributes:
        path: Its Markdown file.
        title: Its first heading.
        text: All of it, as Markdown.
    """

    path: Path
    title: str
    text: str = ""


def list_pages(folder: Path = DOCS) -> list[DocsPage]:
    """The pages in a folder and its guides; none where the documentation is not installed."""
    pages = []
    for path in (*folder.glob("*.md"), *folder.glob("guides/*.md")):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        pages.append(DocsPage(path, first_heading(text) or path.stem, text))
    order: Mapping[str, int] = {name: place for place, name in enumerate(FIRST)}
    return sorted(pages, key=lambda page: (order.get(page.path.stem, len(order)), page.title.lower()))


def pages_with(pages: Sequence[DocsPage], text: str) -> list[DocsPage]:
    """The pages that hold a text, in any case; all of them for an empty one."""
    wanted = text.strip().casefold()
    return [page for page in pages if wanted in page.text.casefold()]


def first_heading(markdown: str) -> str:
    """The first heading's text; empty where there is none."""
    found = re.search(r"^# +(.+?)\s*$", markdown, re.MULTILINE)
    return found[1].replace("`", "") if found else ""


def anchor(heading: str) -> str:
    """The name by which links lead to a heading, as on GitHub: "Comparing runs" is "comparing-runs"."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def link_target(current: Path, link: str) -> tuple[Path, str] | None:
    """The page and the heading's name that a link leads to; None for one that is for the browser or leads nowhere.

    Args:
        current: The page that it stands on.
        link: As written: "modes.md#fsdp", "#fsdp", "https://…".
    """
    if "://" in link or link.startswith("mailto:"):
        return None
    name, _, heading = link.partition("#")
    path = (current.parent / name).resolve() if name else current
    return (path, heading) if path.suffix == ".md" and path.is_file() else None
