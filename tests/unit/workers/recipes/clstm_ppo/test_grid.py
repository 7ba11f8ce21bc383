"""A chunk as a round of PPO: passes, environments and sequences."""

from __future__ import annotations

import numpy as np
import pytest

from rankdeck.recipe import ConfigError
from workers.recipes.clstm_ppo.grid import BLOCK, CHUNK, Grid, fitted_sizes, make_grid


def test_every_pass_has_every_sequence_once_and_a_stretch_of_a_batch_has_its_own_environments() -> None:
    grid = make_grid(chunk=48, block=96, batch=4, passes=3, length=8)
    assert grid == Grid(3, 4, 4, 8) and grid.chunk == 48 and grid.steps == 32
    orders = []
    for pass_ in range(3):
        samples = np.arange(48, 96)[pass_ * 16 : pass_ * 16 + 16]
        places = list(zip(grid.environment(samples), grid.sequence(samples, 7, 0), strict=True))
        assert len(set(places)) == 16
        assert [environment for environment, _ in places] == [0, 1, 2, 3] * 4
        orders.append([sequence for _, sequence in places])
    assert orders[0] != orders[1]
    assert grid.sequence(np.arange(16), 7, 0).tolist() != grid.sequence(np.arange(16), 7, 1).tolist()


@pytest.mark.parametrize(
    ("sizes", "field", "said"),
    [
        ({"chunk": 50, "block": 100}, "dataset_chunk_size", "--dataset-chunk-size 48"),
        ({"chunk": 48, "block": 100}, "samples_per_block", "--samples-per-block 96"),
    ],
)
def test_sizes_that_do_not_divide_are_refused_with_the_nearest(sizes: dict[str, int], field: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_grid(batch=4, passes=3, length=8, **sizes)
    assert caught.value.field == field and said in caught.value.next_step


@pytest.mark.parametrize(
    ("devices", "batch", "chunk", "block"),
    [
        (2, 128, 3_072, 49_152),
        (2, 256, 3_072, 49_152),
        (4, 256, 6_144, 49_152),
        (8, 512, 24_576, 49_152),
        (2, 100, 3_600, 50_400),
        (1, 7, 3_108, 49_728),
    ],
)
def test_sizes_left_at_their_defaults_fit_the_batch(devices: int, batch: int, chunk: int, block: int) -> None:
    sizes = fitted_sizes(3_072, 49_152, 6 * batch * devices, (CHUNK, BLOCK))
    assert sizes == (chunk, block)
    grid = make_grid(*sizes, batch * devices, 6, 16)
    assert (grid.chunk, block % chunk) == (chunk, 0)


def test_sizes_that_were_chosen_are_kept() -> None:
    assert fitted_sizes(3_072, 49_152, 6_144, ()) == (3_072, 49_152)
    assert fitted_sizes(12_288, 50_000, 6_144, (BLOCK,)) == (12_288, 61_440)
    assert fitted_sizes(3_072, 18_000, 1_200, (CHUNK,)) == (3_600, 18_000)
    assert fitted_sizes(3_072, 10_800, 1_200, (CHUNK,)) == (3_600, 10_800)
    assert fitted_sizes(3_072, 12_000, 1_200, (CHUNK,)) == (6_000, 12_000), "3,600 and 4,800 would not divide it"
