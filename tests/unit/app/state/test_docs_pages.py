"""Pages of the documentation and links between them."""

from __future__ import annotations

from pathlib import Path

from app.state.docs_pages import DOCS, anchor, first_heading, link_target, list_pages, pages_with


def test_the_pages_begin_with_the_first_steps() -> None:
    pages = list_pages()
    assert [page.path.stem for page in pages[:2]] == ["getting-started", "command-line"]
    assert pages[1].title == "Command line"
    assert {page.path for page in pages} == {*DOCS.glob("*.md"), *DOCS.glob("guides/*.md")}


def test_without_documentation_there_are_none(tmp_path: Path) -> None:
    assert list_pages(tmp_path / "gone") == []
    (tmp_path / "odd.md").write_bytes(b"\xff\xfe")
    (tmp_path / "plain.md").write_text("no heading", encoding="utf-8")
    assert [page.title for page in list_pages(tmp_path)] == ["plain"]


def test_headings_are_named_as_links_name_them() -> None:
    assert anchor("Comparing runs") == "comparing-runs"
    assert anchor("ZeRO: stages 1 to 3") == "zero-stages-1-to-3"
    assert first_heading("text\n# The `run`\n## Part\n") == "The run"


def test_links_lead_to_pages_or_to_the_browser() -> None:
    page = DOCS / "command-line.md"
    assert link_target(page, "modes.md#sync-interval") == (DOCS / "modes.md", "sync-interval")
    assert link_target(page, "#train") == (page, "train")
    assert link_target(page, "https://pytorch.org/x.md") is None
    assert link_target(page, "no-such-page.md") is None
    assert link_target(page, "../LICENSE") is None


def test_pages_are_found_by_what_stands_in_them() -> None:
    pages = list_pages()
    assert pages_with(pages, " ") == pages
    found = [page.path.stem for page in pages_with(pages, "actv1")]
    assert "actv1" in found and len(found) < len(pages)
    assert pages_with(pages, "no page says this") == []
