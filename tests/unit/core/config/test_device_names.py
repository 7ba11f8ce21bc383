"""One notation for CPU devices by name, another for a count, and the old count as it was."""

from __future__ import annotations

import pytest

from core.config.device_names import (
    MAX_CPU_DEVICES,
    count_devices,
    count_notes,
    cpu_numbers,
    cpu_texts,
    is_cpu,
    with_counts,
)
from core.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("cpu", True),
        ("CPU:3", True),
        ("cpux2", True),
        ("cpu2", False),
        ("cpu:", False),
        ("cpu:x", False),
        ("gpu", False),
    ],
)
def test_what_names_a_cpu_device(text: str, is_one: bool) -> None:
    assert is_cpu(text) is is_one


@pytest.mark.parametrize(
    ("texts", "read", "count"),
    [
        (("cpu:2",), ("cpux2",), 2),  # until 0.1 it counted
        (("cpu:02", "GPU-1"), ("cpux2", "GPU-1"), 3),
        (("cpu:0",), ("cpu:0",), 1),
        (("cpu:1", "cpu:3"), ("cpu:1", "cpu:3"), 2),
        (("cpu", "cpu:3"), ("cpu", "cpu:3"), 2),
        (("cpux3",), ("cpux3",), 3),
        (("GPU-1", "cuda:0"), ("GPU-1", "cuda:0"), 2),
        ((), (), 0),
    ],
)
def test_a_lone_name_is_the_count_that_it_was(texts: tuple[str, ...], read: tuple[str, ...], count: int) -> None:
    assert with_counts(texts) == read
    assert count_devices(texts) == count
    assert len(count_notes(texts)) == (texts != read)


def test_the_note_says_what_to_write() -> None:
    assert count_notes(("cpu:2", "GPU-1")) == (
        "cpu:2 is read as a count, as in earlier versions: write cpux2 to count CPU devices. cpu:0,cpu:1 names them.",
    )


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("cpu", [0]), ("cpu:5", [5]), ("cpux3", [0, 1, 2]), (f"cpu:{MAX_CPU_DEVICES - 1}", [MAX_CPU_DEVICES - 1])],
)
def test_a_text_means_these_numbers(text: str, numbers: list[int]) -> None:
    assert cpu_numbers(text) == numbers


@pytest.mark.parametrize("text", ["cpux0", f"cpux{MAX_CPU_DEVICES + 1}", f"cpu:{MAX_CPU_DEVICES}"])
def test_too_few_and_too_many_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        cpu_numbers(text)
    assert caught.value.field == "devices" and "cpux2" in caught.value.next_step


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ([], ()),
        ([3], ("cpu:0",)),
        ([0, 1, 2], ("cpux3",)),
        ([1, 2], ("cpu:1", "cpu:2")),
        ([1, 0], ("cpu:1", "cpu:0")),
    ],
)
def test_the_shortest_texts_for_numbers(numbers: list[int], texts: tuple[str, ...]) -> None:
    assert cpu_texts(numbers) == texts
