"""Grid of a chunk's samples: passes over a rollout, environments side by side, sequences one after another.

A chunk is one round of PPO. Its samples are sequences of steps; sample number p of a chunk belongs to

    pass          p // (sequences · environments)
    environment   p %  environments

and its sequence of that environment is drawn again for every pass. A batch is one sequence of every environment; so a
rank that works on a slice of each batch plays its own environments and no other's.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rankdeck.recipe import ConfigError

CHUNK: Final = "dataset_chunk_size"
BLOCK: Final = "samples_per_block"

# Keeps the numbers drawn for orders apart from those drawn for episodes.
_ORDER: Final = 2

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Grid:
    """A chunk's samples.

    Attributes:
        passes: Passes over the rollout.
        sequences: Sequences that each environment plays in a round.
        environments: Played side by side, over all ranks that train in step: a batch's samples.
        length: Steps of a sequence.
    """

    passes: int
    sequences: int
    environments: int
    length: int

    @property
    def chunk(self) -> int:
        return self.passes * self.sequences * self.environments

    @property
    def steps(self) -> int:
        """Steps that each environment plays in a round."""
        return self.sequences * self.length

    def environment(self, samples: Indices) -> Indices:
        return samples % self.chunk % self.environments

    def sequence(self, samples: Indices, seed: int, epoch: int) -> Indices:
        """Each sample's sequence of its environment: in every pass each of them once, in another order."""
        found = np.empty_like(samples)
        for at, sample in enumerate(samples.tolist()):
            chunk, place = divmod(sample, self.chunk)
            pass_, within = divmod(place, self.sequences * self.environments)
            batch, environment = divmod(within, self.environments)
            generator = np.random.default_rng([seed, _ORDER, epoch, chunk, pass_, environment])
            found[at] = generator.permutation(self.sequences)[batch]
        return found


def fitted_sizes(chunk: int, block: int, unit: int, at_default: Collection[str]) -> tuple[int, int]:
    """The chunk and block sizes of a run: those that were left at their defaults are raised until they fit.

    A chunk is a multiple of `unit`, passes × global batch; `at_default` names the sizes that may change.
    """
    if CHUNK in at_default:
        chunk = -(-chunk // unit) * unit
        # The block was chosen: the smallest such chunk that divides it.
        if BLOCK not in at_default:
            chunk = next((size for size in range(chunk, block + 1, unit) if block % size == 0), chunk)
    if BLOCK in at_default and chunk % unit == 0:
        block = -(-block // chunk) * chunk
    return chunk, block


def make_grid(chunk: int, block: int, batch: int, passes: int, length: int) -> Grid:
    """The grid of these sizes; raises `ConfigError` where they do not divide."""
    unit = passes * batch
    if chunk % unit:
        near = max(unit, round(chunk / unit) * unit)
        raise ConfigError(
            CHUNK,
            f"A chunk is a round: {passes} passes over whole batches of {batch} sequences. {chunk} samples are not "
            f"a multiple of {unit}.",
            f"Choose a chunk of {near} samples.",
            option=f"--dataset-chunk-size {near}",
        )
    if block % chunk:
        near = max(chunk, round(block / chunk) * chunk)
        raise ConfigError(
            BLOCK,
            f"A block of {block} samples is not a whole number of chunks of {chunk}.",
            f"Choose a block of {near} samples.",
            option=f"--samples-per-block {near}",
        )
    return Grid(passes, chunk // unit, batch, length)
