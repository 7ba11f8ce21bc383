"""Documentation in the browser: its Markdown pages as HTML files, made by Qt, for a program without a network."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Final

from PySide6.QtGui import QTextDocument

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
START: Final = "getting-started"
_FRAME: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title} – Rankdeck</title><style>
:root {{ color-scheme: light dark }} body {{ font: 16px/1.5 "Segoe UI", system-ui, sans-serif; margin: 2em auto;
max-width: 1100px; display: flex; gap: 3em; padding: 0 1em }}
nav {{ flex: 0 0 14em; display: grid; align-content: start }}
main {{ min-width: 0 }} table {{ border-collapse: collapse }} td {{ padding: .3em .6em; vertical-align: top }}
td p {{ margin: 0 }} code, pre {{ font: .9em Consolas, monospace }} pre {{ white-space: pre-wrap; margin: 0 }}
img {{ max-width: 100% }}
</style></head><body><nav>{pages}</nav><main>{text}</main></body></html>
"""


def write_documentation(target: Path, source: Path = DOCS) -> Path:
    """Write all pages below a folder, with links to those for users; return the first one. From any thread.

    Raises:
        OSError: There are no pages, or a file cannot be written.
    """
    pages = {path: path.read_text(encoding="utf-8") for path in source.rglob("*.md")}
    if not pages:
        raise FileNotFoundError(f"There are no pages in {source}")
    titles = {path: _title(text) or path.stem for path, text in pages.items()}
    ordered = sorted(pages, key=lambda path: (path.stem != START, titles[path].lower()))
    files = {path: target / path.relative_to(source).with_suffix(".html") for path in ordered}
    shown = [path for path in ordered if path.parent.name != "decisions"]  # those are for who changes Rankdeck
    links = "".join(f'<a href="{files[path].as_uri()}">{html.escape(titles[path])}</a>' for path in shown)
    for path, text in pages.items():
        files[path].parent.mkdir(parents=True, exist_ok=True)
        page = _FRAME.format(title=html.escape(titles[path]), pages=links, text=page_html(text, path.parent))
        files[path].write_text(page, encoding="utf-8")
    return files[ordered[0]]


def page_html(markdown: str, folder: Path) -> str:
    """A page as Qt's HTML with names for its headings, without fonts and colours; `folder` holds its pictures."""
    document = QTextDocument()
    document.setMarkdown(markdown)
    text = document.toHtml()
    text = text[text.index("<body") : text.index("</body>")].partition(">")[2]
    # Of all text only code has a font, the system's of fixed width: monospace, or Courier New in a size of its own.
    text = re.sub(r"<span style=\" font-family:[^\"]*\">(.*?)</span>", r"<code>\1</code>", text, flags=re.DOTALL)
    text = re.sub(r'(<\w+[^>]*?) style="[^"]*"', r"\1", text)
    text = re.sub(r"<(h[1-6])>(.*?)</\1>", _named_heading, text, flags=re.DOTALL)
    text = re.sub(r'(href="(?!\w+:)[^"#]*)\.md(?=["#])', r"\1.html", text)
    return re.sub(r'src="([^"]+)"', lambda found: f'src="{(folder / found[1]).resolve().as_uri()}"', text)


def anchor(heading: str) -> str:
    """A heading's name in links, as on GitHub: "Comparing runs" is "comparing-runs"."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def _named_heading(found: re.Match[str]) -> str:
    plain = html.unescape(re.sub(r"<[^>]+>", "", found[2]))
    return f'<{found[1]} id="{anchor(plain)}">{found[2]}</{found[1]}>'


def _title(markdown: str) -> str:
    found = re.search(r"^# +(.+?)\s*$", markdown, re.MULTILINE)
    return found[1].replace("`", "") if found else ""
