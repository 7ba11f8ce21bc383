"""Versions and licences."""

from __future__ import annotations

import platform

import pytest

from app.preferences import about_dialog
from core import __version__


def test_what_is_installed_is_named_with_licence_and_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(about_dialog, "installed_version", lambda name, *_: {"torch": "2.13.0"}.get(name))
    html = about_dialog.about_html()
    assert "Apache&nbsp;License&nbsp;2.0" in html
    assert 'href="https://pytorch.org"' in html and "2.13.0" in html and "BSD-3-Clause" in html
    assert "DeepSpeed" not in html
    lines = about_dialog.about_text().splitlines()
    assert lines[:2] == [f"Rankdeck {__version__}", f"Python {platform.python_version()}"]
    assert lines[-1] == "PyTorch 2.13.0"
