"""Steps that ranks time at the same time: real processes, one of which may end or be ended."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import psutil
import pytest

from core.config import RunConfig
from core.config.mode import Mode
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices.device import Device
from core.machine.platform import this_platform
from core.measure.estimate.steps import find_steps, known_steps, steps_are_known
from core.measure.ranks import CancelledError, MeasurementError
from core.recipes.catalog import get_recipe
from tests.helpers.children import children_with

pytestmark = [pytest.mark.slow, pytest.mark.windows, pytest.mark.timeout(400)]
DEVICES = [Device(f"cpu:{number}", "cpu", number, f"CPU {number}") for number in range(2)]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="makes steps for real")
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path / "home"))
    (tmp_path / "text.txt").write_text("the cat sat on the mat. " * 2000, encoding="utf-8")


def made(folder: Path, mode: Mode = Mode.DDP, ranks: int = 2, layers: int = 2) -> ResolvedRun:
    options = {"n_layer": layers, "n_embd": 64, "sample_tokens": 0}
    config = RunConfig(dataset_file=str(folder / "text.txt"), seq_len=32, batch_size=4, steps=2, options=options)
    return resolve_on(config.replace(mode=mode), get_recipe("minigpt"), DEVICES[:ranks], this_platform())


def probes() -> list[psutil.Process]:
    return children_with("workers.programs.measure_main")


def test_one_device_alone_and_both_at_the_same_time(tmp_path: Path) -> None:
    run = made(tmp_path)
    assert known_steps(run) == {}
    found = find_steps(run, limit_s=300)
    cores = run.platform.physical_cores
    assert set(found) == {("cpu", cores, 1), ("cpu", max(1, cores // 2), 2)}
    for steps in found.values():
        assert steps.micro_batch == 4 and steps.pass_s > 0 and steps.update_s > 0 and steps.prepare_s < 0.01
        assert steps.tokens_per_sample == 32
    assert known_steps(run) == found and find_steps(run, limit_s=0.0) == found
    assert steps_are_known(made(tmp_path, Mode.FSDP)), "they do not depend on the mode"
    assert steps_are_known(made(tmp_path, Mode.SINGLE, 1)), "one device alone was timed too"
    assert not steps_are_known(made(tmp_path, layers=1))


def test_a_rank_that_is_killed_ends_the_others(tmp_path: Path) -> None:
    killed: list[int] = []

    def kill() -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until and not killed:
            if len(started := probes()) > 1:
                killed.append(started[1].pid)
                started[1].kill()
            time.sleep(0.05)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(MeasurementError, match="The time of a step could not be measured: a rank "):
            find_steps(made(tmp_path), limit_s=300)
    finally:
        killer.join(130)
    assert killed and probes() == []
    assert known_steps(made(tmp_path)) == {}


def test_a_cancelled_probe_leaves_no_process(tmp_path: Path) -> None:
    with pytest.raises(CancelledError):
        find_steps(made(tmp_path), cancelled=lambda: len(probes()) > 1)
    with pytest.raises(MeasurementError, match="did not finish"):
        find_steps(made(tmp_path), limit_s=0.1)
    assert probes() == []
    assert known_steps(made(tmp_path)) == {}
