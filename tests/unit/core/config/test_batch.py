"""Global batch = micro-batch × ranks × accumulation: two given, the third follows."""

from __future__ import annotations

import pytest

from core.config.batch import Batch, resolve_batch
from core.config.run_config import RunConfig
from core.errors import ConfigError


@pytest.mark.parametrize(
    ("micro", "accumulation", "wanted", "ranks", "expected"),
    [
        (None, None, None, 2, Batch(8, 2, 1, 16)),
        (4, None, None, 2, Batch(4, 2, 1, 8)),
        (None, 3, None, 2, Batch(8, 2, 3, 48)),
        (4, 3, None, 2, Batch(4, 2, 3, 24)),
        (4, None, 24, 2, Batch(4, 2, 3, 24)),
        (None, 3, 24, 2, Batch(4, 2, 3, 24)),
        (4, 3, 24, 2, Batch(4, 2, 3, 24)),
        (None, None, 64, 2, Batch(8, 2, 4, 64)),
        (None, None, 12, 2, Batch(6, 2, 1, 12)),
        (None, None, 14, 1, Batch(7, 1, 2, 14)),
        (None, None, 22, 1, Batch(2, 1, 11, 22)),
    ],
)
def test_the_third_follows(
    micro: int | None, accumulation: int | None, wanted: int | None, ranks: int, expected: Batch
) -> None:
    config = RunConfig(batch_size=micro, grad_accum_steps=accumulation, global_batch_size=wanted)
    batch = resolve_batch(config, ranks)
    assert batch == expected
    assert batch.micro * batch.ranks * batch.accumulation == batch.global_


def test_a_contradiction_names_all_three() -> None:
    config = RunConfig(batch_size=4, grad_accum_steps=2, global_batch_size=10)
    with pytest.raises(ConfigError) as caught:
        resolve_batch(config, 2)
    assert "micro-batch 4 × 2 devices × accumulation 2 is 16" in caught.value.cause
    assert "10" in caught.value.cause
    assert caught.value.field == "global_batch_size"


def test_a_global_batch_that_cannot_be_shared_names_the_nearest_that_can() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_batch(RunConfig(batch_size=4, global_batch_size=10), 2)
    assert "8 or 16" in caught.value.next_step
    with pytest.raises(ConfigError) as caught:
        resolve_batch(RunConfig(global_batch_size=1), 2)
    assert "to 2" in caught.value.next_step


@pytest.mark.parametrize(
    ("batch", "halved"),
    [
        (Batch.of(8, 2, 1), Batch.of(4, 2, 2)),
        (Batch.of(6, 1, 2), Batch.of(3, 1, 4)),
        (Batch.of(5, 2, 2), Batch.of(2, 2, 5)),
        (Batch.of(9, 1, 1), Batch.of(3, 1, 3)),
        (Batch.of(7, 2, 1), Batch.of(1, 2, 7)),
        (Batch.of(2, 1, 3), Batch.of(1, 1, 6)),
        (Batch.of(1, 2, 4), None),
    ],
)
def test_a_halved_micro_batch_leaves_the_samples_as_they_were(batch: Batch, halved: Batch | None) -> None:
    assert batch.halved() == halved
    assert halved is None or (halved.global_ == batch.global_ and halved.micro <= batch.micro // 2)
