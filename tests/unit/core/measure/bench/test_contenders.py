"""Contenders of each kind, and runs that cannot be measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.config.mode import Mode
from core.errors import ConfigError, UsageError
from core.launch.environment import cpu_threads
from core.launch.plan import plan_measuring
from core.measure.bench.contenders import Kind, default_counts, find_contenders, parse_counts
from core.protocol.rank_context import RankContext
from tests.unit.core.measure.bench.made import run


def batches(kind: Kind, counts: tuple[int, ...] = (), **changes: object) -> list[tuple[int, int, int, int]]:
    found = find_contenders(kind, run(4, **changes), counts)  # type: ignore[arg-type]
    return [(one.world_size, one.batch.micro, one.batch.accumulation, one.batch.global_) for one in found]


def test_counts() -> None:
    assert parse_counts("2, 1,2") == (1, 2)
    assert [default_counts(number) for number in (1, 2, 3, 8)] == [(1,), (1, 2), (1, 2, 3), (1, 2, 4, 8)]
    for wrong in ("", "0", "two", "1,-2", "1;2"):
        with pytest.raises(UsageError, match="numbers of devices"):
            parse_counts(wrong)


def test_weak_scaling_keeps_the_batch_of_a_device() -> None:
    assert batches(Kind.WEAK) == [(1, 4, 1, 4), (2, 4, 1, 8), (4, 4, 1, 16)]
    assert batches(Kind.WEAK, (2, 4)) == [(2, 4, 1, 8), (4, 4, 1, 16)]


def test_strong_scaling_keeps_the_global_batch() -> None:
    assert batches(Kind.STRONG) == [(1, 4, 4, 16), (2, 4, 2, 16), (4, 4, 1, 16)]
    # A share that the micro-batch does not divide comes in the largest one that does.
    assert batches(Kind.STRONG, (1, 4), batch_size=3, global_batch_size=24)[1] == (4, 3, 2, 24)
    with pytest.raises(ConfigError, match="cannot be shared out evenly among 3"):
        batches(Kind.STRONG, (1, 3))


def test_sums_need_several_devices_and_no_mode() -> None:
    found = find_contenders(Kind.COMM, run(4, Mode.INDEPENDENT))
    assert [(one.world_size, one.mode, one.backend) for one in found] == [(2, "ddp", "gloo"), (4, "ddp", "gloo")]
    with pytest.raises(ConfigError, match="at least two devices") as refused:
        find_contenders(Kind.COMM, run(1))
    assert refused.value.title == "Not enough devices" and "cpux2" in refused.value.next_step


def test_one_device_trains_as_one_in_every_mode() -> None:
    for mode in (Mode.DDP, Mode.ZERO, Mode.FSDP, Mode.INDEPENDENT):
        first, second = find_contenders(Kind.WEAK, run(2, mode, zero_engine="torch"))
        assert (first.mode, second.mode) == (Mode.SINGLE, mode)


def test_each_device_has_the_same_threads_at_any_count(tmp_path: Path) -> None:
    found = find_contenders(Kind.WEAK, run(4))
    for one in found:
        assert cpu_threads(one.platform, one.world_size) == 2
        for command in plan_measuring(one, tmp_path, "py", "trial"):
            assert RankContext.from_env(command.env).threads == 2 and command.env["OMP_NUM_THREADS"] == "2"


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(ConfigError, match="4 devices are to be measured, and the run has 2"):
        find_contenders(Kind.WEAK, run(2), (1, 4))
    with pytest.raises(ConfigError, match="two or more numbers of devices"):
        find_contenders(Kind.WEAK, run(1))
    with pytest.raises(ConfigError, match="no common global batch"):
        find_contenders(Kind.STRONG, run(2, Mode.INDEPENDENT))
