"""Room: what the estimate says is too large is not tried."""

from __future__ import annotations

from dataclasses import replace

from core.config.mode import Mode
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices.device import Device
from core.machine.platform import Platform
from core.measure.estimate.free import Free
from core.measure.estimate.modes import estimate_run
from core.measure.room import Room
from core.measure.tune.tuned import in_micro_batches
from tests.helpers.resolved_run import RECIPE
from tests.unit.core.measure.bench.made import run as bench_run
from tests.unit.core.measure.estimate.made import BASELINES, CONFIG, FIGURES, MB
from tests.unit.core.measure.tune.made import RUN

LARGER = in_micro_batches(RUN, 16)


def shortage(run: ResolvedRun, free: Free) -> str:
    return Room(FIGURES, BASELINES, free).shortage(run)


def test_a_trial_may_take_four_fifths_of_what_is_free() -> None:
    needs = Room(FIGURES, BASELINES, Free()).need_bytes(LARGER)
    assert needs is not None and needs > 600 * MB
    assert Room(FIGURES, BASELINES, Free(ram=10 * needs)).trial_shortage(RUN, LARGER) == ""
    short = Room(FIGURES, BASELINES, Free(ram=2 * needs)).trial_shortage(RUN, LARGER)  # two ranks share it
    assert "more than 80 % of the" in short and "free in this computer's memory" in short
    assert Room(FIGURES, BASELINES, Free()).trial_shortage(RUN, LARGER) == ""  # nothing is known of what is free


def test_without_figures_nothing_larger_is_tried() -> None:
    room = Room(replace(FIGURES, step_lines=None), BASELINES, Free(ram=1 << 50))
    assert room.need_bytes(LARGER) is None
    assert "not known" in room.trial_shortage(RUN, LARGER)
    assert room.trial_shortage(RUN, RUN) == ""


def test_devices_of_the_processor_share_the_machines_memory() -> None:
    one, two = bench_run(1, Mode.SINGLE), bench_run(2)
    free = Free(ram=1000 * MB)
    assert shortage(one, free) == ""
    assert shortage(two, free).endswith("0.93 GiB that are free in this computer's memory.")
    assert shortage(two, Free()) == "", "what is free is not known"


def test_each_gpu_has_memory_of_its_own() -> None:
    gpus = [Device(f"GPU-{number}", "cuda", number, "A card", 24 << 30) for number in range(2)]
    cards = resolve_on(CONFIG.replace(mode=Mode.DDP), RECIPE, gpus, Platform("linux", "2.13.0", "12.8", 8))
    much, little = 10_000 * MB, 300 * MB
    assert shortage(cards, Free(devices={"GPU-0": much, "GPU-1": much})) == ""
    text = shortage(cards, Free(devices={"GPU-0": much, "GPU-1": little}))
    assert text.startswith("It needs about ") and "0.28 GiB that are free on GPU 1" in text


def test_trials_on_gpus_need_the_commit_charge_of_windows_too() -> None:
    gpu = Device("GPU-0", "cuda", 0, "A card", 24 << 30)
    card = resolve_on(CONFIG, RECIPE, [gpu], Platform("windows", "2.13.0", "12.8", 8))
    free = Free(ram=1, devices={"GPU-0": 24 << 30}, commit=300 * MB)
    assert shortage(card, free).endswith("are free in memory and page file.")
    assert shortage(card, replace(free, commit=64 << 30)) == ""


def test_no_copy_for_a_checkpoint_is_counted() -> None:
    whole = estimate_run(bench_run(2), FIGURES, BASELINES, Free()).host_bytes
    assert shortage(bench_run(2), Free(ram=whole - 1)) == ""
