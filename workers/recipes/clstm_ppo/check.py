"""Checks of settings before a rank starts; they need no torch, and create one environment.

The ranks look again: by then they know how many they are.
"""

from __future__ import annotations

from pathlib import Path

from rankdeck.recipe import Checked, ConfigError, Request, read_options
from workers.recipes.clstm_ppo.environments import is_trading, open_world
from workers.recipes.clstm_ppo.grid import BLOCK, CHUNK, fitted_sizes, make_grid
from workers.recipes.clstm_ppo.options import Options
from workers.recipes.clstm_ppo.trading import Market, open_files


def check(request: Request) -> Checked:
    """Refuse what cannot be trained; give notes, and sizes that are adapted to the batch."""
    options = read_options(request, Options)
    fitted = Checked() if request.global_batch is None else fit(request, request.global_batch)
    notes: list[str] = []
    market: Market | None = None
    if is_trading(options):
        named = request.config.dataset_file
        if request.resumes or Path(named).is_dir():
            # Its prices are in its folder; which files of a folder are read is known to the ranks.
            return fitted
        files, market = open_files(named, lambda: [Path(named)], options)
        notes += [
            f"{file.name}: {len(file.prices):,} prices in the column {file.column!r}, {file.bad_rows:,} of "
            f"{file.rows:,} rows skipped, {len(file.stretches) - 1} longer gaps."
            for file in files
        ]
    world = open_world(options, market)
    kind = "numbers" if world.actions.continuous else "actions to choose from"
    notes.append(f"{world.name}: {world.observations.size} numbers observed, {world.actions.count} {kind}.")
    return Checked([*fitted.notes, *notes], fitted.settings)


def fit(request: Request, batch: int) -> Checked:
    """Fit the chunk and block sizes to a global batch where they are at their defaults."""
    config, passes = request.config, read_options(request, Options).passes
    asked = (config.dataset_chunk_size, config.samples_per_block)
    sizes = fitted_sizes(*asked, passes * batch, request.at_default)
    try:
        grid = make_grid(*sizes, batch, passes, config.seq_len)
    except ConfigError as refusal:
        if request.resumes:
            refusal.next_step = "Resume with the number of devices and the batch that the run had."
        raise
    changed = {name: size for name, old, size in zip((CHUNK, BLOCK), asked, sizes, strict=True) if size != old}
    if CHUNK not in changed:
        block = f"The block has {sizes[1]:,} samples instead of {asked[1]:,}: whole chunks of {sizes[0]:,}."
        return Checked([block] if changed else [], changed)
    note = (
        f"The chunk has {sizes[0]:,} samples instead of {asked[0]:,} (block: {sizes[1]:,}): {passes} passes over a "
        f"global batch of {batch:,}. Each environment plays {grid.steps} steps in a round."
    )
    return Checked([note], changed)
