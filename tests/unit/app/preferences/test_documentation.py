"""The documentation as HTML files: pages, links between them, headings and pictures."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import pytest

from app.preferences.documentation import DOCS, page_html, write_documentation

pytestmark = [pytest.mark.windows, pytest.mark.usefixtures("qapp")]


def test_every_link_between_pages_leads_to_a_heading_or_a_file(tmp_path: Path) -> None:
    first = write_documentation(tmp_path / "söme docs")
    assert '<h1 id="getting-started">' in first.read_text(encoding="utf-8")
    texts = {path: path.read_text(encoding="utf-8") for path in (tmp_path / "söme docs").rglob("*.html")}
    assert len(texts) == len(list(DOCS.rglob("*.md")))
    broken = []
    for path, text in texts.items():
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            parts = urlsplit(html.unescape(link))
            if parts.scheme in ("https", "http", "mailto"):
                continue
            local = Path(url2pathname(parts.path)) if parts.scheme == "file" else path.parent / unquote(parts.path)
            target = local.resolve() if parts.path else path
            is_heading = target in texts and parts.fragment
            is_missing = tmp_path in target.parents and target not in texts
            if is_missing or (is_heading and f'id="{parts.fragment}"' not in texts[target]):
                broken.append(f"{path.name}: {link}")
    assert broken == []


def test_a_page_keeps_code_tables_and_pictures(tmp_path: Path) -> None:
    text = page_html("# A `b` & c\n\n| x | y |\n|---|---|\n| 1 | `2` |\n\n![p](../p.png) [m](modes.md#fsdp)", tmp_path)
    assert '<h1 id="a-b--c">' in text and "<code>2</code>" in text and "<table" in text and "style=" not in text
    assert f'src="{(tmp_path.parent / "p.png").resolve().as_uri()}"' in text and 'href="modes.html#fsdp"' in text


def test_without_pages_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_documentation(tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()
