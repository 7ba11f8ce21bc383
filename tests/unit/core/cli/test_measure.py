"""`rankdeck measure`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.cli import main
from core.machine.devices.monitor import DeviceMonitor
from core.measure.link import Link


def test_it_prints_what_it_measured_and_what_intervals_would_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a real measurement gives is tested with `measure_link`, and through the window."""
    monkeypatch.setattr("core.cli.measure.measure_link", lambda devices, _: Link(100.0, 1e-3, len(devices), "gloo"))
    words = ["measure", "--devices", "cpux2", "--json", "--parameters", "1e6", "--step-time-s", "0.1"]
    assert main([*words, "--runs-dir", str(tmp_path)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["mb_per_s"] == 100.0 and answer["devices"] == ["cpu:0", "cpu:1"]
    each, tenth, *_, never = answer["prices"]
    assert each["sync_every"] == 1 and tenth["bytes_per_step"] == pytest.approx(each["bytes_per_step"] / 10)
    assert never["sync_every"] is None and never["bytes_per_step"] == 0


def test_all_devices_are_measured_when_none_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.cli.measure.measure_link", lambda devices, _: Link(100.0, 1e-3, len(devices), "gloo"))
    assert main(["measure", "--json", "--runs-dir", str(tmp_path)]) == 0
    devices = json.loads(capsys.readouterr().out)["devices"]
    with DeviceMonitor() as monitor:
        assert devices == [device.uuid for device in monitor.cpu_slots()]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--devices", "cpu:0"], "needs two devices"),
        (["--devices", "cpux2", "--parameters", "100"], "both the model's size and the step time"),
        (["--devices", "cpux2", "--parameters", "0", "--step-time-s", "1"], "must be positive"),
    ],
)
def test_what_cannot_be_measured_is_a_mistake_in_the_command(
    words: list[str], part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", *words, "--runs-dir", str(tmp_path)]) == 2
    assert part in capsys.readouterr().err
    assert not (tmp_path / "links.json").exists()
