"""Whether the computer is kept awake, as the person chose."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.doctor.machine import check_sleep
from core.host import __main__ as host
from core.machine import keep_awake
from core.machine.keep_awake import PowerSettings, keep_power_settings, read_power_settings
from tests.helpers.made_runs import make_run

pytestmark = pytest.mark.windows


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
    assert runs_dir and check_sleep().level in ("ok", "not_tried")
    keep_power_settings(PowerSettings(keep_awake=False))
    finding = check_sleep()
    assert finding.level == "warn" and "turned off in Settings" in finding.text
