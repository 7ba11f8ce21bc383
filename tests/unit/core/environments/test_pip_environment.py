"""pip's variables and sources."""

from __future__ import annotations

from pathlib import Path

from core.environments.pip_environment import clean, source_options, wheels_folder, without_python_home


def test_nothing_leads_a_new_python_astray() -> None:
    found = clean({"PythonHome": "x", "PYTHONPATH": "x", "PIP_TARGET": "x", "PIP_INDEX_URL": "kept", "Path": "kept"})
    assert found == {"PIP_INDEX_URL": "kept", "Path": "kept"}
    assert without_python_home({"PYTHONHOME": "x", "PYTHONPATH": "kept"}) == {"PYTHONPATH": "kept"}


def test_a_folder_of_wheels_is_the_only_source() -> None:
    assert source_options(Path("w"), "https://index") == ["--no-index", "--find-links", "w"]
    assert source_options(None, "https://index") == ["--index-url", "https://index"]
    assert source_options(None, None) == []
    assert wheels_folder({}) is wheels_folder({"RANKDECK_WHEELS": " "}) is None
    found = wheels_folder({"RANKDECK_WHEELS": "w"})
    assert found is not None and found.is_absolute() and found.name == "w"
