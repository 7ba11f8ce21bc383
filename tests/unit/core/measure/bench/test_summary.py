"""What a benchmark says."""

from __future__ import annotations

from dataclasses import replace

from core.measure.bench.contenders import Kind
from core.measure.bench.summary import sentences
from tests.unit.core.measure.bench.made import KILLED, MB, SUMS, WEAK, bench, memory, steps


def test_scaling_names_the_target() -> None:
    assert sentences(bench(Kind.WEAK, WEAK)) == [
        "2 devices: 91 % (87 to 93) of the ideal speed; the target of 90 % is within the spread."
    ]
    missed = bench(Kind.STRONG, {0: steps(0.1), 1: steps(0.09)})
    assert sentences(missed) == ["2 devices: 56 % of the ideal speed; the target of 80 % is missed."]


def test_sums_of_the_models_size_are_compared() -> None:
    assert sentences(bench(Kind.COMM, {0: [SUMS]})) == ["The model's gradients (1 MiB) on 2 devices: gloo 3.00 ms."]


def test_memory_says_peak_and_verdict_of_the_worst_device() -> None:
    leaking = [300 * MB + 9000 * step for step in range(60)]
    first, second = sentences(bench(Kind.MEMORY, {0: [memory([MB] * 5)], 1: [memory([300 * MB] * 60, leaking)]}))
    assert first.endswith("Too few steps to judge a leak; give more --seconds.")
    assert second == ("2 devices: peak 0.29 GiB each. Memory grows by 9,000 ± 0 bytes a step: 90 MB in 10,000 steps.")


def test_accumulation_says_the_fastest_and_the_slowest() -> None:
    found = sentences(bench(Kind.ACCUMULATION, {0: steps(0.3), 1: steps(0.2)}))
    assert found == ["1 device: micro-batch 2 × 4 is the fastest; 1 × 8 takes 1.50 × as long (1.50 to 1.50 ×)."]


def test_failures_and_a_stop_are_said() -> None:
    found = sentences(replace(bench(Kind.WEAK, {0: steps(0.1), 1: [KILLED]}), is_stopped=True))
    assert found[0] == ("2 devices, micro-batch 4 × 1: process killed. The process of rank 1 killed (SIGKILL).")
    assert found[1].startswith("Stopped early")
