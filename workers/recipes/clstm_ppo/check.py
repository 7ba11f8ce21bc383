"""What can be known to be wrong before a rank is started: a program that Rankdeck runs when a run is asked for.

It is given a file of settings and prints one line of JSON. It makes one environment to look at; it needs no torch. The
ranks look again: by then they know how many they are.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from workers.recipes.clstm_ppo.environments import is_trading, open_world
from workers.recipes.clstm_ppo.grid import BLOCK, CHUNK, fitted_sizes, make_grid
from workers.recipes.clstm_ppo.market_data import open_files
from workers.recipes.clstm_ppo.refusal import RefusalError
from workers.recipes.clstm_ppo.trading import Market


def check(config: Mapping[str, Any]) -> list[str]:
    """Refuses what cannot be trained.

    Args:
        config: Everything that was asked.

    Returns:
        What a person should know though it stops nothing.

    Raises:
        RefusalError: The first thing that cannot work.
    """
    options, notes = config["options"], []
    market: Market | None = None
    if is_trading(options):
        named = str(config["dataset_file"])
        if Path(named).is_dir():
            return []  # which files of a folder are read is known to the ranks
        files, market = open_files(named, lambda: [Path(named)], options)
        notes += [
            f"{file.name}: {len(file.prices):,} prices in the column {file.column!r}, {file.bad_rows:,} of "
            f"{file.rows:,} rows left out, {len(file.stretches) - 1} longer gaps."
            for file in files
        ]
    world = open_world(options, market)
    kind = "numbers" if world.actions.continuous else "actions to choose from"
    return [*notes, f"{world.name}: {world.observations.size} numbers observed, {world.actions.count} {kind}."]


def fit(
    config: Mapping[str, Any], batch: int, at_default: Collection[str], *, resumes: bool = False
) -> tuple[dict[str, int], list[str]]:
    """Fits the chunk and block sizes to the batch where they were left at their defaults.

    Args:
        config: Everything that was asked.
        batch: Samples in an optimizer step.
        at_default: Names of the settings that have the recipe's default.
        resumes: The run exists, and its sizes cannot change.

    Returns:
        The sizes that change, and notes on them.

    Raises:
        RefusalError: The sizes that were chosen do not fit the batch.
    """
    asked, passes = (config[CHUNK], config[BLOCK]), config["options"]["passes"]
    sizes = fitted_sizes(*asked, passes * batch, at_default)
    try:
        grid = make_grid(*sizes, batch, passes, config["seq_len"])
    except RefusalError as refusal:
        if resumes:
            refusal.next_step = "Resume with the number of devices and the batch that the run had."
        raise
    changed = {name: size for name, old, size in zip((CHUNK, BLOCK), asked, sizes, strict=True) if size != old}
    if CHUNK not in changed:
        block = f"The block has {sizes[1]:,} samples instead of {asked[1]:,}: whole chunks of {sizes[0]:,}."
        return changed, [block] if changed else []
    return changed, [
        f"The chunk has {sizes[0]:,} samples instead of {asked[0]:,} (block: {sizes[1]:,}): {passes} passes over a "
        f"global batch of {batch:,}. Each environment plays {grid.steps} steps in a round."
    ]


def main() -> None:
    """Prints what there is to say."""
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    config, batch = settings["config"], settings.get("global_batch")
    if importlib.util.find_spec("gymnasium") is None:
        answer: dict[str, Any] = {"missing": ["gymnasium"], "cause": "The recipe Recurrent PPO"}
    else:
        try:
            answer = {"notes": check(config)}
            if batch is not None:
                sizes, notes = fit(config, batch, settings["at_default"], resumes=settings["resumes"])
                answer = {"notes": [*notes, *answer["notes"]], "settings": sizes}
        except RefusalError as refusal:
            answer = {"field": refusal.field, "cause": refusal.cause, "next_step": refusal.next_step}
            answer |= {"title": refusal.title} if refusal.title else {}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
