"""Environments from an earlier Rankdeck, and one that suits already."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.environments.record import Environment, Record, executable_in, find_suitable, free_folder, write_record
from core.environments.wanted import outdated_text, pinned_torch, present_outdated_text
from core.training_python import VARIABLE

NAME = "torch-2.13.0-cpu"


def environment(parent: Path, name: str, torch: str, extras: tuple[str, ...] = ()) -> Environment:
    record = Record("ready", "3.12.14", torch, extras)
    write_record(parent / name, record)
    executable = executable_in(parent / name)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    lib = "Lib/site-packages" if sys.platform == "win32" else f"lib/{version}/site-packages"
    (parent / name / "python" / lib).mkdir(parents=True)
    executable.parent.mkdir(parents=True, exist_ok=True)
    executable.touch()
    return Environment(parent / name, record)


def test_another_torch_is_named_and_another_build_is_not(tmp_path: Path) -> None:
    assert outdated_text(environment(tmp_path, "good", f"{pinned_torch()}+cu130")) == ""
    old = environment(tmp_path, "old", "2.12.0+cpu")
    assert outdated_text(old) == f"It has torch 2.12.0; this Rankdeck is tested with {pinned_torch()}."


def test_one_that_suits_is_used_again_and_any_other_stays_beside_a_new_one(tmp_path: Path) -> None:
    environment(tmp_path, NAME, "2.13.0+cpu")
    assert find_suitable(tmp_path, NAME, ("hf",)) is None
    assert free_folder(tmp_path, NAME) == tmp_path / f"{NAME}-2"
    good = environment(tmp_path, f"{NAME}-2", "2.13.0+cpu", ("hf",))
    assert find_suitable(tmp_path, NAME, ("hf",)) == good
    assert find_suitable(tmp_path, NAME, ("rl",)) is None
    assert find_suitable(tmp_path, "torch-2.13.0", ()) is None, "another build"
    assert free_folder(tmp_path, NAME) == tmp_path / f"{NAME}-3"


def test_what_trains_now_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = environment(tmp_path, "old", "2.12.0")
    monkeypatch.setattr("core.training_python.importlib.util.find_spec", lambda *_: None)
    monkeypatch.setenv(VARIABLE, str(executable_in(old.folder)))
    assert present_outdated_text().startswith("Your environment old is from an earlier Rankdeck. It has torch 2.12.0;")
    monkeypatch.setenv(VARIABLE, sys.executable)
    assert present_outdated_text() == ""
