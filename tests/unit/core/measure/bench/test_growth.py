"""Verdicts on leaks, on series that were recorded and on constructed ones."""

from __future__ import annotations

import random

import pytest

from core.measure.bench.growth import find_growth

MB = 1 << 20
# MiniGPT on one CPU device: the allocator takes two more pieces, then nothing.
RECORDED = [340 * MB] * 10 + [341 * MB] * 11 + [342 * MB] * 7 + [342 * MB + 4096] * 40


def grown(bytes_per_step: float, noise: float = 0.0, steps: int = 400) -> list[float]:
    draw = random.Random(1)
    return [300 * MB + bytes_per_step * step + draw.gauss(0, noise) for step in range(steps)]


def test_a_leak_is_seen_in_its_size() -> None:
    found = find_growth(grown(5000, noise=20_000))
    assert found is not None and found.verdict == "grows"
    assert found.bytes_per_step == pytest.approx(5000, abs=3 * found.error) and 0 < found.error < 500
    assert found.sentence.startswith("Memory grows by ") and "10,000 steps" in found.sentence


def test_a_leak_in_pages_is_seen() -> None:
    found = find_growth([round(value) // 4096 * 4096 for value in grown(700)])
    assert found is not None and found.verdict == "grows" and found.bytes_per_step == pytest.approx(700, rel=0.05)


def test_noise_is_no_leak() -> None:
    found = find_growth(grown(0, noise=MB))
    assert found is not None and found.verdict == "no growth" and found.error > 0
    assert found.sentence.startswith("No leak seen: ") and "at most" in found.sentence


def test_one_jump_is_no_steady_growth() -> None:
    jump = [300.0 * MB] * 300 + [304.0 * MB] * 100
    found = find_growth(jump)
    assert found is not None and found.verdict == "no growth"
    assert found.error > found.bytes_per_step > 0  # said as its uncertainty


def test_what_is_taken_at_the_beginning_does_not_count() -> None:
    found = find_growth(RECORDED)
    assert found is not None and found.verdict == "no growth"
    assert (found.bytes_per_step, found.error) == (0, 0)
    assert found.sentence == "No leak seen: 0 ± 0 bytes a step over 34 steps, so at most 0 bytes a step."


def test_a_random_walk_is_not_taken_for_a_leak_more_often_than_now_and_then() -> None:
    wrong = 0
    for seed in range(40):
        draw, value, series = random.Random(seed), 300.0 * MB, []
        for _ in range(300):
            value += draw.choice((-4096, 0, 0, 4096))
            series.append(value)
        found = find_growth(series)
        wrong += found is not None and found.verdict == "grows"
    assert wrong <= 12  # an ordinary fit is wrong in about 18 of these


def test_too_few_steps_have_no_verdict() -> None:
    assert find_growth(grown(5000, steps=18)) is None
    assert find_growth([]) is None
