"""Has a recipe export weights: `python -m workers.programs.export_main RUN_DIR RECIPE WEIGHTS TARGET`, started by
`core.export`.

The last line that it prints says what went wrong, as JSON; nothing is said when nothing did.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from core.config import RunConfig
from core.config.config_file import read_config
from core.config.layers import config_from_mapping
from core.recipes.catalog import get_recipe
from core.recipes.manifest import apply_recipe
from workers.host_link.failures import explain
from workers.recipe_api.loader import load_function


def main(argv: Sequence[str]) -> int:
    """Runs the recipe's `export`; 0 when it did, 1 when it failed."""
    run_dir, recipe_dir, weights, target = map(Path, argv)
    try:
        config = config_from_mapping(read_config(run_dir / "run.toml"), RunConfig())
        recipe = get_recipe(str(recipe_dir))
        from workers.recipe_api import Export

        given = Export(apply_recipe(config, recipe), run_dir / "data", weights, target)
        load_function(recipe, "export")(given)
    except Exception as error:
        traceback.print_exc()
        sys.stderr.flush()
        failed = explain(error, "this machine")
        print(json.dumps({"title": failed.title, "cause": failed.cause, "next_step": failed.next_step}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
