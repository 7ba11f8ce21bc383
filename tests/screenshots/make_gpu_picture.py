"""The picture with GPUs: `python -m tests.screenshots.make_gpu_picture FOLDER`, started under `tests.helpers.nvml_sim`.

The cards are simulated (an RTX 6000 Ada beside an RTX 4090, under load); what is trained is real, on two CPU devices.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PySide6.QtWidgets import QApplication

from core import client
from core.config import RunConfig
from core.machine import platform
from core.run_folder.store import RunStore
from tests.screenshots.make_screenshots import PICTURE_AT, STEPS, Studio


def gpu_picture(studio: Studio) -> None:
    """New run with two unequal cards that other programs use, beside a run that trains on the CPU."""
    studio.rankdeck.open()
    studio.wait(lambda: any(device.kind == "cuda" for device in studio.rankdeck.table.devices))
    config = RunConfig(dataset_file="stdlib://", devices=("cpu:2",), mode="ddp", steps=STEPS, eval_every=40)
    run = client.start_run(config, studio.rankdeck.runs_dir)
    studio.rankdeck.showing.show(run.dir)
    studio.wait(lambda: studio.step() >= PICTURE_AT)
    studio.window.actions_.new_run.setChecked(True)
    studio.rest(3)
    studio.picture("gpus")
    client.stop_run(RunStore.open(run.dir), now=True)
    studio.wait(lambda: studio.state() not in ("starting", "training", "stopping"))
    studio.window.close_now()


if __name__ == "__main__":
    platform._torch_build = lambda: ("2.13.0+cu130", "13.0", None)  # a CPU build would leave the cards unticked
    with tempfile.TemporaryDirectory(prefix="rankdeck pictures ", ignore_cleanup_errors=True) as home:
        gpu_picture(Studio(QApplication([]), Path(home), Path(sys.argv[1]).absolute()))
