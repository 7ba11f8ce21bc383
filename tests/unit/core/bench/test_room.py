"""Room: contenders that cannot fit."""

from __future__ import annotations

from core.bench.room import shortage
from core.config.mode import Mode
from core.estimate.estimate import estimate_run
from core.estimate.free import Free
from core.launch.resolved import resolve_on
from core.machine.devices.device import Device
from core.machine.platform import Platform
from tests.helpers.resolved_run import RECIPE
from tests.unit.core.bench.made import run
from tests.unit.core.estimate.made import BASELINES, CONFIG, FIGURES, MB


def test_devices_of_the_processor_share_the_machines_memory() -> None:
    one, two = run(1, Mode.SINGLE), run(2)
    free = Free(ram=1000 * MB)
    assert shortage(one, FIGURES, BASELINES, free) == ""
    assert shortage(two, FIGURES, BASELINES, free).endswith("and 0.93 GiB are free in this machine's memory.")
    assert shortage(two, FIGURES, BASELINES, Free()) == "", "what is free is not known"


def test_each_gpu_has_memory_of_its_own() -> None:
    gpus = [Device(f"GPU-{number}", "cuda", number, "A card", 24 << 30) for number in range(2)]
    cards = resolve_on(CONFIG.replace(mode=Mode.DDP), RECIPE, gpus, Platform("linux", "2.13.0", "12.8", 8))
    much, little = 10_000 * MB, 300 * MB
    assert shortage(cards, FIGURES, BASELINES, Free(devices={"GPU-0": much, "GPU-1": much})) == ""
    text = shortage(cards, FIGURES, BASELINES, Free(devices={"GPU-0": much, "GPU-1": little}))
    assert text.startswith("It needs about ") and "0.28 GiB are free on GPU 1" in text


def test_no_copy_for_a_checkpoint_is_counted() -> None:
    whole = estimate_run(run(2), FIGURES, BASELINES, Free()).host_bytes
    assert shortage(run(2), FIGURES, BASELINES, Free(ram=whole - 1)) == ""
