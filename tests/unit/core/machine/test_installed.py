"""What is known of a package without importing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.machine import installed

pytestmark = pytest.mark.windows


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages that Python looks into."""
    monkeypatch.syspath_prepend(tmp_path)
    for name, extra in (("made", "Requires-Dist: numpy>=1\nRequires-Dist: rich; extra == 'x'\n"), ("alone", "")):
        (tmp_path / f"{name}-1.5.dist-info").mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n{extra}"
        (tmp_path / f"{name}-1.5.dist-info" / "METADATA").write_text(text, encoding="utf-8")
    (tmp_path / "bare").mkdir()
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "__init__.py").write_text("raise SystemExit", encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("packages")
def test_metadata_is_read_and_nothing_is_imported() -> None:
    assert [installed.version(name) for name in ("made", "alone", "bare", "missing")] == ["1.5", "1.5", None, None]
    assert installed.requires("made") == ("numpy>=1", "rich; extra == 'x'")
    assert [installed.requires(name) for name in ("alone", "bare", "missing")] == [(), (), ()]
