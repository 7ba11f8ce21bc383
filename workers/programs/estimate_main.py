"""Measures what training a recipe needs in memory and time: `python -m workers.programs.estimate_main REQUEST`.

Started by `core.estimate.probe`, with the environment of a rank. A request names either engines, to measure a bare
process of each, or a recipe and its settings; with a `rank` its sizes are known, and steps are timed with other ranks.
"""

from __future__ import annotations

import json
import os
import time
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
COUNT: Final = "count.json"
"""Likewise: the parameter count."""


def estimate(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The figures that a request asks for."""
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    from workers.estimate.baseline import baselines

    if "engines" in asked:
        return baselines(asked["engines"], folder)
    from workers.estimate.parameter_count import count_parameters
    from workers.estimate.probe import TimedRank, probe, probe_times, rss_bytes

    batch, device = Batch.of(asked["micro_batch"], 1, asked["accumulation"]), torch.device(asked["device"])
    if "rank" not in asked:
        baselines(["single"], folder)  # what a bare rank loads must not count as the recipe's
    config = config_from_mapping(without_version(asked["config"], folder))
    recipe = get_recipe(asked["recipe"])
    main = load_function(recipe, "main")
    if "rank" in asked:
        rank = TimedRank(asked["rank"], asked["ranks"], asked["threads"], asked["alone_threads"])
        return probe_times(config, main, batch, folder, device, rank)

    def say(found: dict[str, Any], name: str = FIGURES) -> None:
        write_atomic(folder / name, json.dumps(found), durable=False)

    at_first = rss_bytes()  # before the count: what that imports is the recipe's, too
    if asked.get("counts_first"):
        say(count_parameters(recipe, config), COUNT)
        time.sleep(asked["rest_s"])  # the next edit of the draft ends this process
    return probe(config, main, batch, folder, device, say, at_first)


if __name__ == "__main__":
    answer(estimate)
