"""``python -m core.cli.machine_server``: answers another computer's Rankdeck, which starts it over SSH."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from core.cli.train import check_request
from core.client import start_run
from core.config.layers import DeviceCount
from core.launch.command_line import TrainRequest
from core.machines.agent import Frames, checked_path
from core.machines.run_copy import read_settings
from core.machines.server import Server
from core.paths import default_runs_dir
from core.recipes.catalog import get_recipe


def main() -> int:
    # What anything else prints belongs to ssh's errors, not between the frames.
    frames = Frames(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    return Server(frames, {"start": _start}).serve()


def _start(frame: Mapping[str, Any]) -> dict[str, Any]:
    """Check a run as `rankdeck train` does, and start it."""
    runs_dir = default_runs_dir()
    run_dir = runs_dir.absolute() / checked_path(str(frame["run_id"]))[0]
    config = read_settings(str(frame["config"]))
    count = None if frame.get("count") is None else DeviceCount(frame["count"][0], str(frame["count"][1]))
    request = TrainRequest(config, get_recipe(config.recipe), run_dir, runs_dir, count)
    checked = check_request(request, runs_dir)
    store = start_run(checked.run.config, runs_dir, run_dir, resolved=checked.run)
    return {"run_dir": str(store.dir), "notes": list(checked.notes)}


if __name__ == "__main__":
    sys.exit(main())
