"""Differences between an environment and what this Rankdeck is tested with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.environments.differences import (
    Difference,
    compare,
    differences_text,
    find_differences,
    find_suitable,
    parse_pins,
    present_differences,
)
from core.environments.record import Environment, Record, executable_in, free_folder, write_record
from core.training_python import VARIABLE, package_folder

PINS = "# a note\ntorch==2.13.0\nnumpy==2.4.6\nPyYAML==6.0.3\ndeepspeed==0.16.5; sys_platform == 'win32'\ntqdm==4.67\n"


def environment(parent: Path, name: str, extras: tuple[str, ...] = (), **packages: str) -> Environment:
    folder = parent / name
    record = Record("ready", "3.12.14", packages.get("torch", ""), extras)
    write_record(folder, record)
    executable = executable_in(folder)
    executable.parent.mkdir(parents=True)
    executable.touch()
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = (
        folder / "python" / "Lib" / "site-packages"
        if sys.platform == "win32"
        else folder / "python" / "lib" / version / "site-packages"
    )
    site.mkdir(parents=True)
    assert package_folder(executable) == site
    for package, number in packages.items():
        info = site / f"{package}-{number}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {number}\n", encoding="utf-8")
    return Environment(folder, record)


@pytest.fixture
def pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "constraints.txt"
    path.write_text(PINS, encoding="utf-8")
    monkeypatch.setattr("core.environments.wanted.CONSTRAINTS", path)
    return path


def test_pins_are_read_for_this_system() -> None:
    assert parse_pins(PINS, "win32")["deepspeed"] == "0.16.5"
    assert "deepspeed" not in parse_pins(PINS, "linux")
    assert parse_pins(PINS, "linux")["pyyaml"] == "6.0.3"


def test_a_build_is_not_another_version_and_the_important_come_first() -> None:
    pins = parse_pins(PINS, "linux")
    assert compare({"torch": "2.13.0+cu130", "numpy": "2.4.6", "unknown": "1"}, pins) == ()
    found = compare({"PyYAML": "6.0.2", "numpy": "2.3", "torch": "2.12.0+cpu"}, pins)
    assert [one.package for one in found] == ["numpy", "torch", "PyYAML"]
    assert found[1] == Difference("torch", "2.12.0+cpu", "2.13.0")


def test_the_text_names_three_and_counts_the_rest() -> None:
    assert differences_text(()) == ""
    one = Difference("torch", "2.12.0", "2.13.0")
    assert differences_text([one]) == "It has torch 2.12.0; this Rankdeck is tested with 2.13.0."
    assert differences_text([one] * 5).endswith(" 2 more packages differ.")


def test_an_environment_is_compared_by_its_packages(tmp_path: Path, pins: Path) -> None:
    good = environment(tmp_path, "torch-2.13.0-cpu", ("hf",), torch="2.13.0+cpu", numpy="2.4.6")
    old = environment(tmp_path, "old", torch="2.12.0", numpy="2.4.6")
    assert find_differences(good) == ()
    assert find_differences(old, pins) == (Difference("torch", "2.12.0", "2.13.0"),)


@pytest.mark.usefixtures("pins")
def test_one_that_suits_is_used_again_and_any_other_stays_beside_a_new_one(tmp_path: Path) -> None:
    name = "torch-2.13.0-cpu"
    old = environment(tmp_path, name, ("hf",), torch="2.12.0")
    assert find_suitable(tmp_path, name, ()) is None
    assert free_folder(tmp_path, name) == tmp_path / f"{name}-2"
    good = environment(tmp_path, f"{name}-2", ("hf",), torch="2.13.0+cpu")
    assert find_suitable(tmp_path, name, ("hf",)) == good
    assert find_suitable(tmp_path, name, ("rl",)) is None
    assert find_suitable(tmp_path, "torch-2.13.0", ()) is None, "another build"
    assert free_folder(tmp_path, name) == tmp_path / f"{name}-3"
    assert find_differences(old) != ()


@pytest.mark.usefixtures("pins")
def test_what_trains_now_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = environment(tmp_path, "old", torch="2.12.0")
    monkeypatch.setattr("core.training_python.importlib.util.find_spec", lambda *_: None)
    monkeypatch.setenv(VARIABLE, str(executable_in(old.folder)))
    assert present_differences().startswith("Your environment old is from an earlier Rankdeck. It has torch 2.12.0;")
    monkeypatch.setenv(VARIABLE, sys.executable)
    assert present_differences() == ""
