"""Whether the computer is kept awake, as the person chose, and advice while it runs on a battery."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from core.doctor.machine import check_battery, check_sleep, check_sleep_on_linux
from core.host import __main__ as host
from core.machine import keep_awake, power
from core.machine.power import (
    BATTERY_NOTE,
    Battery,
    PowerSettings,
    battery_notes,
    keep_power_settings,
    read_battery,
    read_power_settings,
)
from tests.helpers.made_runs import make_run

pytestmark = pytest.mark.windows
POWERCFG = "Current AC Power Setting Index: 0x00000708\nCurrent DC Power Setting Index: 0x00000384\n"


def test_it_is_kept_awake_unless_the_person_does_not_want_it(runs_dir: Path) -> None:
    assert read_power_settings().keep_awake
    keep_power_settings(PowerSettings(keep_awake=False))
    assert not read_power_settings().keep_awake and [path.name for path in runs_dir.iterdir()] == ["power.json"]
    (runs_dir / "power.json").write_text('{"keep_awake": "no"}', encoding="utf-8")
    assert read_power_settings().keep_awake, "a damaged file is none"


@pytest.mark.parametrize("wanted", [True, False])
def test_a_host_does_as_the_person_chose(
    wanted: bool, runs_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.txt").write_bytes(b"some text\n" * 9000)
    store = make_run(tmp_path, runs_dir=runs_dir)
    asked: list[bool] = []
    kept = keep_awake.kept_awake

    def note() -> object:
        asked.append(True)
        return kept()

    async def no_run(*_: object) -> int:
        return 0

    monkeypatch.setattr(host, "kept_awake", note)
    monkeypatch.setattr(host, "_host", no_run)
    monkeypatch.setattr(host, "_log_to", lambda _: None)
    keep_power_settings(PowerSettings(keep_awake=wanted))
    assert host.main([str(store.dir)]) == 0
    assert asked == [True] * wanted


def test_the_doctor_says_that_it_may_fall_asleep(runs_dir: Path) -> None:
    assert runs_dir and check_sleep(lambda: POWERCFG).level == "ok"
    keep_power_settings(PowerSettings(keep_awake=False))
    for finding in (check_sleep(lambda: POWERCFG), check_sleep_on_linux()):
        assert finding.level == "warn" and "turned off in Settings" in finding.text


def system(monkeypatch: pytest.MonkeyPatch, answer: Callable[[], object]) -> None:
    monkeypatch.setattr(psutil, "sensors_battery", answer, raising=False)


def test_a_battery_in_use_is_a_note_and_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    system(monkeypatch, lambda: SimpleNamespace(percent=62.6, secsleft=4000, power_plugged=False))
    battery = read_battery()
    assert battery == Battery(63, True) and battery_notes(battery) == (BATTERY_NOTE,)
    finding = check_battery()
    assert finding.level == "warn" and "63 %" in finding.text


def test_a_pc_that_is_plugged_in_or_has_no_battery_has_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    system(monkeypatch, lambda: SimpleNamespace(percent=100, secsleft=-2, power_plugged=True))
    assert battery_notes(read_battery()) == () and check_battery().level == "ok"

    def broken() -> object:
        raise OSError("no such file")

    for answer in (lambda: None, broken, lambda: SimpleNamespace(percent=0, secsleft=0, power_plugged=None)):
        system(monkeypatch, answer)
        assert power.read_battery() is None and battery_notes(None) == ()
    assert check_battery().text == "no battery"
    monkeypatch.delattr(psutil, "sensors_battery", raising=False)
    assert read_battery() is None
