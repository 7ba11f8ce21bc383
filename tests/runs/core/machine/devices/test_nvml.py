"""GPUs in all kinds of trouble, simulated by a library that answers NVML's own calls.

Each test runs a small program under `tests.helpers.nvml_sim` and reads what that printed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.nvml_sim import NEEDS_SIMULATOR, with_gpus

SCENARIOS = Path(__file__).with_name("scenarios")
pytestmark = [*NEEDS_SIMULATOR]

PROGRAM = """
import json, os, sys, time
from core.machine.devices.monitor import DeviceMonitor
os.environ["NVMLSIM_T0"] = str(time.time())  # second 0 of the scenario is now, however long the start took

def show(what):
    print(json.dumps(what), flush=True)

def sample_until(wanted):
    for _ in range(600):
        samples = [sample.as_dict() for sample in monitor.sample()]
        if wanted(samples):
            return samples
        time.sleep(0.02)
    raise SystemExit(f"never seen; last: {samples}")

with DeviceMonitor(first_look_limit_s=LOOK, sample_limit_s=0.2, hang_s=0.5) as monitor:
    show([device.name for device in monitor.devices()])
    show(monitor.problem)
"""


def watch(scenario: str, code: str = "", *, speed: float = 1, look_s: float = 20.0) -> list[Any]:
    """Runs a monitor under a scenario; returns device names, the problem, and what `code` shows."""
    file = SCENARIOS / f"{scenario}.txt"
    program = PROGRAM.replace("LOOK", str(look_s)) + "".join(f"    {line}\n" for line in code.strip().splitlines())
    done = with_gpus(str(file) if file.exists() else scenario, ["-c", program], speed=speed)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


SHOW_SAMPLE = "show([sample.as_dict() for sample in monitor.sample()])"


def test_memory_in_use_is_that_of_the_card_which_the_process_sees() -> None:
    program = "from core.machine.devices.gpu_list import OwnGpu\nprint(OwnGpu(is_amd=False).used_bytes())"
    shown = {"CUDA_VISIBLE_DEVICES": "GPU-6ada6000-1111-4aaa-8aaa-0000000000a1"}
    done = with_gpus("two_workstation", ["-c", program], env=shown)
    assert 0 < int(done.stdout) < 49140 << 20, done.stderr
    assert with_gpus("two_workstation", ["-c", program], env={"CUDA_VISIBLE_DEVICES": ""}).stdout == "None\n"


def test_two_cards_with_every_figure() -> None:
    names, problem, devices, samples, driver = watch(
        "two_workstation",
        f"from dataclasses import asdict\nshow([asdict(device) for device in monitor.devices()])\n{SHOW_SAMPLE}\n"
        "show(monitor.driver)",
    )
    assert names == ["NVIDIA RTX 6000 Ada Generation", "NVIDIA GeForce RTX 4090"]
    assert problem is None
    assert driver == "581.57"
    assert [device["index"] for device in devices] == [0, 1]
    assert [device["memory_bytes"] for device in devices] == [49140 << 20, 24564 << 20]
    assert [device["compute_capability"] for device in devices] == [[8, 9], [8, 9]]
    for device, sample in zip(devices, samples, strict=True):
        assert sample["uuid"] == device["uuid"]
        assert sample["memory_total_bytes"] == device["memory_bytes"]
        assert 0 < sample["memory_used_bytes"] < sample["memory_total_bytes"]
        assert {"utilization_percent", "temperature_celsius", "power_w", "power_limit_w"} <= set(sample)
        assert {"fan_percent", "sm_clock_mhz"} <= set(sample)
        assert "error" not in sample
    assert [sample["power_limit_w"] for sample in samples] == [300, 450]


def test_energy_is_counted_while_it_is_used() -> None:
    _, _, counting, first, later = watch(
        "two_workstation",
        "show([device.counts_energy for device in monitor.devices()])\n"
        "energy = lambda samples: [sample['energy_j'] for sample in samples]\n"
        "before = energy(sample_until(lambda samples: all('energy_j' in sample for sample in samples)))\n"
        "show(before)\n"
        "show(energy(sample_until(lambda samples: all(e > b for e, b in zip(energy(samples), before)))))",
        speed=10,
    )
    assert counting == [True, True]
    assert all(0 <= before < after for before, after in zip(first, later, strict=True))


def test_why_a_card_is_throttled_is_said_in_words() -> None:
    hot = "show(sample_until(lambda s: len(s[1]['throttle_reasons']) > 1)[1]['throttle_reasons'])"
    *_, reasons = watch("two_workstation", hot, speed=100)
    assert reasons == ["too hot: the hardware halves the clock", "hot: the driver lowers the clock"]


@pytest.mark.parametrize(
    ("scenario", "words"),
    [("zero_gpus", "finds no GPU"), ("no_driver", "not running"), ("none", "NVIDIA driver is installed")],
)
def test_no_gpu_is_said_in_words_and_cpu_slots_are_offered(scenario: str, words: str) -> None:
    names, problem, samples = watch(scenario, SHOW_SAMPLE)
    if scenario == "none" and problem is None:
        pytest.skip("this machine has a real NVIDIA driver")
    assert words in problem
    assert len(names) >= 2
    assert all(name.startswith("CPU ") for name in names)
    assert [sample["uuid"] for sample in samples] == [f"cpu:{number}" for number in range(len(names))]


def test_a_card_that_is_lost_says_so_and_the_others_go_on() -> None:
    *_, lost, back = watch(
        "lost",
        "show(sample_until(lambda s: 'error' in s[1]))\nshow(sample_until(lambda s: 'error' not in s[1]))",
        speed=100,
    )
    assert "GPU is lost" in lost[1]["error"]
    assert "utilization_percent" not in lost[1]
    for other in (lost[0], lost[2], *back):
        assert "error" not in other
        assert "utilization_percent" in other


def test_a_card_that_was_lost_before_the_start_is_named() -> None:
    names, problem, samples = watch("lost_before_start", SHOW_SAMPLE)
    assert names == ["NVIDIA Card B"]
    assert problem.startswith("GPU 0 cannot be used: GPU is lost")
    assert len(samples) == 1


def test_a_figure_that_a_card_does_not_have_is_left_out() -> None:
    *_, samples = watch("unsupported", SHOW_SAMPLE)
    assert samples[0]["utilization_percent"] == 42
    assert samples[0]["temperature_celsius"] == 55
    assert not {"power_w", "power_limit_w", "fan_percent", "error"} & set(samples[0])
    assert samples[0]["throttle_reasons"] == []


def test_a_card_that_refuses_every_figure_has_an_error() -> None:
    *_, mute = watch("unsupported", "show(sample_until(lambda s: 'error' in s[1]))", speed=200)
    assert mute[1]["error"] == "gives no figures (Unknown Error)"
    assert "error" not in mute[0]


def test_an_old_driver_that_lacks_functions_still_gives_what_it_has() -> None:
    names, problem, (sample,) = watch("old_driver", SHOW_SAMPLE)
    assert (names, problem) == (["NVIDIA Old Card"], None)
    assert sample["memory_used_bytes"] > 1000 << 20
    assert sample["temperature_celsius"] == 61
    assert sample["throttle_reasons"] == ["hot: the driver lowers the clock", "power cap: the card draws all it may"]
    assert not {"fan_percent", "error"} & set(sample)


def test_a_driver_that_hangs_is_reported_and_taken_back_when_it_answers() -> None:
    *_, hanging, back = watch(
        "hang",
        "show(sample_until(lambda s: all('error' in one for one in s)))\n"
        "show(sample_until(lambda s: not any('error' in one for one in s)))",
        speed=70,
    )
    for sample in hanging:
        assert "has not answered for" in sample["error"]
    assert len(back) == 2


def test_a_driver_that_hangs_at_the_start_costs_a_bounded_wait() -> None:
    names, problem, later = watch(
        "hang_at_start",
        "sample_until(lambda s: s[0]['uuid'].startswith('GPU-'))\nshow([d.name for d in monitor.devices()])",
        speed=70,
        look_s=0.2,
    )
    assert all(name.startswith("CPU ") for name in names)
    assert "has not answered yet" in problem
    assert later == ["NVIDIA Card A"]


def test_what_is_gone_or_silent_cannot_be_used_and_what_gives_no_figures_can() -> None:
    unusable = "show([s.is_unusable for s in monitor.sample()])"
    *_, lost = watch("lost", f"sample_until(lambda s: 'error' in s[1])\n{unusable}", speed=100)
    assert lost == [False, True, False]
    *_, hanging = watch("hang", f"sample_until(lambda s: all('error' in one for one in s))\n{unusable}", speed=70)
    assert hanging == [True, True]
    *_, mute = watch("unsupported", f"sample_until(lambda s: 'error' in s[1])\n{unusable}", speed=200)
    assert mute == [False, False]


def test_a_driver_that_is_always_slow_is_not_called_hanging_again_and_again() -> None:
    count = "errors = [any('error' in one.as_dict() for one in monitor.sample()) for _ in range(12)]"
    known = "sample_until(lambda s: 'utilization_percent' in s[0])"
    *_, before, errors = watch("very_slow", f"show({known})\n{count}\nshow(errors)")
    assert before[0]["utilization_percent"] == 42
    assert errors == [False] * 12


def test_slots_that_are_trained_on_are_sampled_beside_gpus() -> None:
    *_, samples = watch("lost", f"import os\nmonitor.watch({{'cpu:1': os.getpid()}})\n{SHOW_SAMPLE}")
    assert [sample["uuid"][:4] for sample in samples] == ["GPU-", "GPU-", "GPU-", "cpu:"]
    assert samples[3]["uuid"] == "cpu:1" and samples[3]["memory_used_bytes"] > 0


def test_many_slow_cards_are_read_side_by_side() -> None:
    names, _, samples = watch("slow", "show(sample_until(lambda s: all('utilization_percent' in one for one in s)))")
    assert len(names) == len(samples) == 8


def test_a_program_ends_although_the_driver_still_hangs() -> None:
    names, problem = watch("hang_at_start", speed=1, look_s=0.1)
    assert "has not answered" in problem
    assert names
