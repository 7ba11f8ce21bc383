"""Room: what the estimate says is too large is not tried."""

from __future__ import annotations

from dataclasses import replace

from core.config.mode import Mode
from core.launch.resolved import resolve_on
from core.machine.devices.device import Device
from core.machine.platform import Platform
from core.measure.estimate.free import Free
from core.measure.estimate.modes import estimate_run
from core.measure.room import Room, shortage
from tests.helpers.resolved_run import RECIPE
from tests.unit.core.measure.bench.made import run as bench_run
from tests.unit.core.measure.estimate.made import BASELINES, CONFIG, FIGURES, MB
from tests.unit.core.measure.tune.made import RUN, START, run

LARGER = START.in_micro_batches(16).applied(RUN)


def test_a_trial_may_take_four_fifths_of_what_is_free() -> None:
    needs = Room(FIGURES, BASELINES, Free()).need_bytes(RUN, LARGER)
    assert needs is not None and needs > 600 * MB
    assert Room(FIGURES, BASELINES, Free(ram=10 * needs)).shortage(RUN, LARGER) == ""
    short = Room(FIGURES, BASELINES, Free(ram=2 * needs)).shortage(RUN, LARGER)  # two ranks share it
    assert "more than 80 % of the" in short and "free in this computer's memory" in short
    assert Room(FIGURES, BASELINES, Free()).shortage(RUN, LARGER) == ""  # nothing is known of what is free


def test_without_figures_nothing_larger_is_tried() -> None:
    room = Room(replace(FIGURES, step_lines=None), BASELINES, Free(ram=1 << 50))
    assert room.need_bytes(RUN, LARGER) is None
    assert "not known" in room.shortage(RUN, LARGER)
    assert room.shortage(RUN, RUN) == ""


def test_without_checkpointing_the_figures_without_it_count() -> None:
    stored = run(options={"grad_checkpointing": True})
    off = replace(START, checkpointing=False).applied(stored)
    room = Room(FIGURES, BASELINES, Free(ram=100_000 * MB))
    assert "not known" in room.shortage(stored, off)
    assert replace(room, stored=FIGURES).shortage(stored, off) == ""
    assert room.shortage(stored, stored) == ""
    assert room.shortage(run(Mode.FSDP), run(Mode.FSDP)) == ""


def test_devices_of_the_processor_share_the_machines_memory() -> None:
    one, two = bench_run(1, Mode.SINGLE), bench_run(2)
    free = Free(ram=1000 * MB)
    assert shortage(one, FIGURES, BASELINES, free) == ""
    assert shortage(two, FIGURES, BASELINES, free).endswith("0.93 GiB that are free in this computer's memory.")
    assert shortage(two, FIGURES, BASELINES, Free()) == "", "what is free is not known"


def test_each_gpu_has_memory_of_its_own() -> None:
    gpus = [Device(f"GPU-{number}", "cuda", number, "A card", 24 << 30) for number in range(2)]
    cards = resolve_on(CONFIG.replace(mode=Mode.DDP), RECIPE, gpus, Platform("linux", "2.13.0", "12.8", 8))
    much, little = 10_000 * MB, 300 * MB
    assert shortage(cards, FIGURES, BASELINES, Free(devices={"GPU-0": much, "GPU-1": much})) == ""
    text = shortage(cards, FIGURES, BASELINES, Free(devices={"GPU-0": much, "GPU-1": little}))
    assert text.startswith("It needs about ") and "0.28 GiB that are free on GPU 1" in text


def test_trials_on_gpus_need_the_commit_charge_of_windows_too() -> None:
    gpu = Device("GPU-0", "cuda", 0, "A card", 24 << 30)
    card = resolve_on(CONFIG, RECIPE, [gpu], Platform("windows", "2.13.0", "12.8", 8))
    free = Free(ram=1, devices={"GPU-0": 24 << 30}, commit=300 * MB)
    assert shortage(card, FIGURES, BASELINES, free, saves=False).endswith("are free in memory and page file.")
    assert shortage(card, FIGURES, BASELINES, replace(free, commit=64 << 30), saves=False) == ""


def test_no_copy_for_a_checkpoint_is_counted() -> None:
    whole = estimate_run(bench_run(2), FIGURES, BASELINES, Free()).host_bytes
    assert shortage(bench_run(2), FIGURES, BASELINES, Free(ram=whole - 1), saves=False) == ""
