"""Asks a recipe's `check(request)` what it cannot train: `python -m workers.programs.check_main RECIPE SETTINGS`.

Started by `core.recipes.check`, which says what the last line of the output is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.config.config_file import upgrade
from core.config.layers import config_from_mapping
from core.errors import RankdeckError
from core.machine.packages import MissingPackageError
from core.recipes.catalog import get_recipe
from core.recipes.manifest import CHECK
from workers.recipe_api.loader import load_function
from workers.recipe_api.refusals import Checked, Request


def main(argv: Sequence[str]) -> None:
    """Prints what the recipe says: notes, or why it cannot train with these settings."""
    folder, settings = argv
    asked = json.loads(Path(settings).read_text(encoding="utf-8"))
    config = config_from_mapping(upgrade(asked.pop("config"), Path(settings)))
    try:
        found = load_function(get_recipe(folder), "check", CHECK)(Request(config, **asked))
        checked = found if isinstance(found, Checked) else Checked(found)
        answer: dict[str, Any] = {"notes": list(checked.notes), "settings": dict(checked.settings)}
    except MissingPackageError as error:
        answer = {"missing": error.packages, "cause": error.cause, "next_step": error.next_step}
    except RankdeckError as error:
        answer = {"field": getattr(error, "field", ""), **error.as_dict()}
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1:])
