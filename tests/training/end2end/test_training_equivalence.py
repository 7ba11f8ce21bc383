"""The same work gives the same result: on one device or two, interrupted or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.run_folder.store import RunStore
from tests.helpers.hosted_run import curve, host, lines, make_run, write_text

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

STEPS = 50
SETTINGS = {"steps": STEPS, "global_batch_size": 16, "batch_size": 4, "checkpoint_every_steps": 10, "lr": 5e-3}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text") / "text.txt")


@pytest.fixture(scope="module")
def ddp(tmp_path_factory: pytest.TempPathFactory, text: Path) -> RunStore:
    store = make_run(tmp_path_factory.mktemp("ddp") / "run", text, "ddp", 2, **SETTINGS)
    assert host(store) == 0
    return store


def test_one_device_stopped_and_resumed_has_the_curve_of_two(tmp_path: Path, text: Path, ddp: RunStore) -> None:
    """One device, four micro-batches; stopped once on the way, which must not show in the curve either."""
    single = make_run(tmp_path / "run", text, "single", 1, **SETTINGS)
    assert host(single, stop_at=12) == 0
    assert single.state().state == "stopped" and single.model.is_file()
    stopped_at = single.state().step
    assert 12 <= stopped_at < STEPS
    assert host(single) == 0
    assert single.state().state == "finished"
    assert lines(single, "launch")[-1]["resumed_from"] == {"0": stopped_at}
    one, two = curve(single), curve(ddp)
    assert list(one) == list(two) == list(range(1, STEPS + 1))
    worst = max(abs(one[step] - two[step]) / abs(two[step]) for step in one)
    assert worst <= 1e-4
    assert one[STEPS] < one[1] - 1.0, "it learns"
    evaluations = [[line["val_loss"] for line in lines(run, "eval")] for run in (single, ddp)]
    assert evaluations[0] == pytest.approx(evaluations[1], rel=1e-4)


def test_zero_killed_and_resumed_ends_bit_equal_to_ddp(tmp_path: Path, text: Path, ddp: RunStore) -> None:
    """Sharding the optimizer changes no bit of any weight, nor does losing every process on the way."""
    zero = make_run(tmp_path / "run", text, "zero", 2, zero_engine="torch", **SETTINGS)
    assert host(zero, "mid_chunk@25") != 0
    assert host(zero) == 0
    assert zero.model.read_bytes() == ddp.model.read_bytes()
    assert curve(zero) == curve(ddp)


SHARDED = {**SETTINGS, "options": {"sample_tokens": 8}}


@pytest.fixture(scope="module")
def fsdp(tmp_path_factory: pytest.TempPathFactory, text: Path) -> RunStore:
    store = make_run(tmp_path_factory.mktemp("fsdp") / "run", text, "fsdp", 2, **SHARDED)
    assert host(store) == 0
    return store


def test_fsdp_killed_and_resumed_ends_as_if_nothing_had_happened(tmp_path: Path, text: Path, fsdp: RunStore) -> None:
    """Every rank writes and takes up its own shards."""
    killed = make_run(tmp_path / "run", text, "fsdp", 2, **SHARDED)
    assert host(killed, "mid_chunk@25") != 0
    assert host(killed) == 0
    # The checkpoint of step 20 is written beside the training: a slow disk may not have it yet at step 25.
    assert lines(killed, "launch")[-1]["resumed_from"] in ({"0": 20, "1": 20}, {"0": 10, "1": 10})
    assert killed.model.read_bytes() == fsdp.model.read_bytes()
    assert curve(killed) == curve(fsdp)
