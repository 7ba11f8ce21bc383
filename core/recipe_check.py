"""What only a recipe can know to be wrong before a rank is started: its own `check` program is asked.

A recipe that says `check = "check.py"` has a program which is run as ``python check.py SETTINGS.json``; the file holds
`config`, everything that was asked. The last line that it prints is JSON: `{"notes": ["…"]}` where nothing stops the
run, else `{"field": "…", "cause": "…", "next_step": "…"}`, with `title` if it likes, or `missing`, packages to install.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from core.config import RunConfig
from core.config.documents import to_json
from core.errors import ConfigError
from core.extras import MissingPackageError
from core.launch_plan import PACKAGE_FOLDER
from core.process_tree import ProcessTree
from core.recipes import Recipe

LIMIT_S: Final = 60.0
_POLL_S: Final = 0.01


def check_by_recipe(config: RunConfig, recipe: Recipe, limit_s: float = LIMIT_S) -> tuple[str, ...]:
    """Asks the recipe whether it can train as asked. Blocks; may be called from any thread.

    Args:
        config: Complete with the recipe's defaults.
        recipe: Its recipe; one without a `check` is not asked.
        limit_s: After that the program is ended, and its ranks will find out.

    Returns:
        What a person should know though it stops nothing.

    Raises:
        ConfigError: A setting that the recipe cannot use.
        MissingPackageError: It lacks a package.
    """
    if not recipe.check:
        return ()
    answer = _ask(config, recipe, limit_s)
    missing = answer.get("missing")
    if missing:
        raise MissingPackageError([str(name) for name in missing], str(answer.get("cause") or recipe.title))
    if answer.get("cause"):
        error = ConfigError(str(answer.get("field", "")), str(answer["cause"]), str(answer.get("next_step", "")))
        error.title = str(answer.get("title") or error.title)
        raise error
    return tuple(str(note) for note in answer.get("notes", ()))


def _ask(config: RunConfig, recipe: Recipe, limit_s: float) -> Mapping[str, Any]:
    with tempfile.TemporaryDirectory(prefix="rankdeck-check-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        settings, log = folder / "settings.json", folder / "check.log"
        settings.write_text(json.dumps({"config": json.loads(to_json(config))}), encoding="utf-8")
        paths = [str(PACKAGE_FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUTF8": "1"}
        argv = (sys.executable, str(recipe.folder / recipe.check), str(settings))
        with ProcessTree() as tree:
            child = tree.spawn(argv, environment, folder, log)
            deadline = time.monotonic() + limit_s
            while child.poll() is None and time.monotonic() < deadline:
                time.sleep(_POLL_S)
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    try:
        answer = json.loads(lines[-1])
    except (ValueError, IndexError):
        answer = None
    if isinstance(answer, dict):
        return answer
    last = f": {lines[-1].strip()}" if lines else ""
    return {"notes": [f"{recipe.title} could not be checked beforehand ({recipe.check} failed{last})."]}
