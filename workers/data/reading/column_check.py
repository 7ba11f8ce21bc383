"""Check for a text column before a run is created: ``python -m workers.data.reading.column_check SETTINGS.json``.

`core.recipes.check` starts it and reports its output.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from core.data.formats import TEXT_COLUMN
from core.errors import RankdeckError
from workers.data.reading.corpus import find_column


def main(settings: Path) -> None:
    """Prints one line of JSON: what is wrong, or nothing."""
    config = json.loads(settings.read_text(encoding="utf-8"))["config"]
    answer: dict[str, Any] = {}
    try:
        find_column(config["dataset_file"], config["options"])
    except RankdeckError as error:  # files and packages were looked at before, so it is about the column
        answer = error.as_dict()
        answer["field"] = getattr(error, "field", TEXT_COLUMN)
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
