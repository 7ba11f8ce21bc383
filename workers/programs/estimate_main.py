"""Measures what training a recipe needs in memory and time: `python -m workers.programs.estimate_main REQUEST`.

Started by `core.estimate.probe`, with the environment of a rank. A request names either engines, to measure a bare
process of each, or a recipe and its settings; with a `rank` its sizes are known, and steps are timed with other ranks.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from core.config.batch import Batch
from core.config.config_file import without_version
from core.config.layers import config_from_mapping
from core.files.atomic import write_atomic
from core.recipes.catalog import get_recipe
from workers.programs.answer import answer
from workers.recipe_api.loader import load_function

FIGURES: Final = "figures.json"
"""Beside the request: what is known so far."""


def estimate(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The figures that a request asks for."""
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    from workers.estimate.baseline import baselines

    if "engines" in asked:
        return baselines(asked["engines"], folder)
    from workers.estimate.probe import TimedRank, probe, probe_times

    batch, device = Batch.of(asked["micro_batch"], 1, asked["accumulation"]), torch.device(asked["device"])
    if "rank" not in asked:
        baselines(["single"], folder)  # what a bare rank loads must not count as the recipe's
    config = config_from_mapping(without_version(asked["config"], folder))
    main = load_function(get_recipe(asked["recipe"]), "main")
    if "rank" in asked:
        rank = TimedRank(asked["rank"], asked["ranks"], asked["threads"], asked["alone_threads"])
        return probe_times(config, main, batch, folder, device, rank)

    def say(found: dict[str, Any]) -> None:
        write_atomic(folder / FIGURES, json.dumps(found), durable=False)

    return probe(config, main, batch, folder, device, say)


if __name__ == "__main__":
    answer(estimate)
