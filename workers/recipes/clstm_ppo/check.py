"""What can be known to be wrong before a rank is started: a program that Rankdeck runs when a run is asked for.

It is given a file of settings and prints one line of JSON. It makes one environment to look at; it needs no torch. The
ranks look again: by then they know how many they are.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workers.recipes.clstm_ppo.environments import is_trading, open_world
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


def main() -> None:
    """Prints what there is to say."""
    config = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["config"]
    if importlib.util.find_spec("gymnasium") is None:
        answer: dict[str, Any] = {"missing": ["gymnasium"], "cause": "The recipe Recurrent PPO"}
    else:
        try:
            answer = {"notes": check(config)}
        except RefusalError as refusal:
            answer = {"field": refusal.field, "cause": refusal.cause, "next_step": refusal.next_step}
            answer |= {"title": refusal.title} if refusal.title else {}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
