"""Extras: what they hold is read from the project, what is missing is named, the command is this interpreter's pip."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

import core.machine.packages as packages_module
from core.machine.packages import (
    CHECKOUT,
    MissingPackageError,
    check_packages,
    choose_extras,
    find_extras,
    install_text,
    installed_requires,
    installed_version,
    missing_packages,
    offer_for,
    parse_requires,
)


def test_extras_are_those_of_the_project() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert find_extras()["data"] == tuple(project["optional-dependencies"]["data"])


def test_an_installed_rankdeck_has_them_in_its_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "site" / "rankdeck-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: rankdeck\nVersion: 0.1.0\n"
        "Requires-Dist: numpy>=1.26\n"
        'Requires-Dist: tokenizers>=0.19; extra == "bpe"\n'
        "Requires-Dist: deepspeed>=0.16.5; sys_platform == 'linux' and extra == 'deepspeed'\n"
        "Requires-Dist: deepspeed==0.16.5; (sys_platform == 'win32' and python_version < '3.13') "
        "and extra == 'deepspeed'\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert find_extras(tmp_path / "no checkout") == {
        "bpe": ("tokenizers>=0.19",),
        "deepspeed": (
            "deepspeed>=0.16.5; sys_platform == 'linux'",
            "deepspeed==0.16.5; sys_platform == 'win32' and python_version < '3.13'",
        ),
    }
    assert offer_for(["tokenizers"], tmp_path / "no checkout").argv[-1] == "tokenizers>=0.19"


def test_without_either_a_package_is_installed_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages_module, "DISTRIBUTION", "absent-rankdeck")
    offer = offer_for(["some_thing"], tmp_path)
    assert offer.extras == () and offer.argv[-1] == "some_thing" and "-c" not in offer.argv


def test_a_marker_in_parentheses_with_others_inside_stays_whole() -> None:
    line = "a; (x == '1' or (y == '2' and z == '3')) and extra == 'e'"
    assert parse_requires([line]) == {"e": ("a; (x == '1' or (y == '2' and z == '3'))",)}


@pytest.mark.parametrize(
    ("packages", "extras", "others"),
    [
        (["tokenizers"], ("bpe",), ()),
        (["transformers", "peft", "tokenizers"], ("hf",), ()),
        (["pyarrow"], ("data",), ()),
        (["transformers", "gymnasium", "librosa"], ("hf", "rl"), ("librosa",)),
    ],
)
def test_the_smallest_extras_that_hold_everything_are_chosen(
    packages: list[str], extras: tuple[str, ...], others: tuple[str, ...]
) -> None:
    assert choose_extras(packages, find_extras()) == (extras, others)


def test_what_is_missing_is_named_with_the_way_to_it() -> None:
    assert missing_packages(["json", "no_such_thing", "xml.nothing_there", "nowhere.at_all"]) == (
        "no_such_thing",
        "xml.nothing_there",
        "nowhere.at_all",
    )
    with pytest.raises(MissingPackageError) as caught:
        check_packages(["gone_one", "gone_two"], "The recipe Mine")
    assert caught.value.cause.startswith("The recipe Mine needs the packages gone_one and gone_two, which are not")
    assert "pip install gone_one gone_two" in caught.value.next_step and caught.value.exit_code == 3
    assert "pip" not in caught.value.window_step, "the window has a button for it"


def test_the_command_for_people_can_work_in_a_checkout_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert install_text(["peft", "librosa"]) == f'pip install -e "{CHECKOUT}[hf]" librosa', "no index has this Rankdeck"
    monkeypatch.setattr(packages_module, "installed_requires", lambda *_: ["peft; extra == 'hf'"])
    assert install_text(["peft", "librosa"], tmp_path) == "pip install rankdeck[hf] librosa"


def test_a_package_that_came_meanwhile_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    assert missing_packages(["came_late"]) == ("came_late",)
    (tmp_path / "came_late.py").write_text("", encoding="utf-8")
    assert missing_packages(["came_late"]) == ()


def test_the_command_is_this_interpreters_pip_with_our_versions() -> None:
    offer = offer_for(["gymnasium"])
    assert offer.extras == ("rl",) and offer.argv[0] == sys.executable
    assert offer.argv[offer.argv.index("-c") + 1] == str(CHECKOUT / "constraints.txt")
    assert offer.argv[-1] == "gymnasium>=1.0"
    assert not any("'" in word for word in offer_for(["deepspeed"]).argv), "it can be pasted into a shell"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    assert [installed_version(name) for name in ("made", "alone", "bare", "missing")] == ["1.5", "1.5", None, None]
    assert installed_requires("made") == ("numpy>=1", "rich; extra == 'x'")
    assert [installed_requires(name) for name in ("alone", "bare", "missing")] == [(), (), ()]
