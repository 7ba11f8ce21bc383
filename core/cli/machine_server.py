"""``python -m core.cli.machine_server``: answers another computer's Rankdeck over standard input and output.

`core.machines.session` starts it over SSH; it is not a command for people.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from core.cli.train import check_request
from core.client import start_run
from core.config.layers import DeviceCount
from core.held_files import read_utf8
from core.launch.command_line import TrainRequest
from core.machines.agent import Frames, checked_path
from core.machines.run_copy import read_settings
from core.machines.server import Server
from core.paths import default_runs_dir
from core.recipes.catalog import get_recipe
from core.run_folder.store import RunStore


def main() -> int:
    # What anything else prints belongs to ssh's errors, not between the frames.
    frames = Frames(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    return Server(frames, {"start": _start}).serve()


def _start(frame: Mapping[str, Any]) -> dict[str, Any]:
    """Checks a run as `rankdeck train` does, and starts it; one that a cut answer has started is answered again."""
    runs_dir = default_runs_dir()
    run_dir = runs_dir.absolute() / checked_path(str(frame["run_id"]))[0]
    if (run_dir / "run.toml").exists():
        return {"run_dir": str(run_dir), "config": read_utf8(run_dir / "run.toml"), "notes": []}
    config = read_settings(str(frame["config"]))
    count = None if frame.get("count") is None else DeviceCount(frame["count"][0], str(frame["count"][1]))
    request = TrainRequest(config, get_recipe(config.recipe), run_dir, runs_dir, count)
    checked = check_request(request, runs_dir)
    if frame.get("dry_run"):
        return {"notes": [note for note in (checked.data, *checked.notes) if note]}
    store: RunStore = start_run(checked.run.config, runs_dir, run_dir)
    return {
        "run_dir": str(store.dir),
        "config": read_utf8(store.run_toml),
        "notes": list(checked.notes),
        "name": store.stored_state().name,
        "devices": [device.name for device in checked.run.devices],
        "mode": str(checked.run.mode),
    }


if __name__ == "__main__":
    sys.exit(main())
