"""Takes the picture of a run that waits for other machines: `python -m tests.screenshots.make_nodes_picture [FOLDER]`.

The page is the window's own; the machines are made up, since a picture needs no three computers.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from app.views.nodes.nodes_page import NodesPage
from core.launch.nodes.status import NodesStatus, NodeStatus
from tests.screenshots.make_screenshots import FOLDER, Studio

REFUSED = {
    "title": "The nodes differ",
    "cause": "PyTorch differs: 2.6.0 on gpubox, 2.7.1 on node1.",
    "next_step": "Install the same PyTorch on all machines.",
}
STATUS = NodesStatus(
    2,
    3,
    (
        NodeStatus("node1", "10.0.0.1", "host", ("GPU 0 · RTX 4090", "GPU 1 · RTX 4090")),
        NodeStatus("node2", "10.0.0.2", "joined", ("GPU 0 · RTX 4090",)),
        NodeStatus("gpubox", "10.0.0.3", "refused", error=REFUSED),
    ),
    folder="/shared/runs",
    line=tuple(
        shlex.split(
            "rankdeck train --dataset-file /shared/books --steps 20000 --batch-size 16 --run-dir "
            "/shared/runs/minigpt-20261126-230828-152d --nodes 2:3 --nic auto --rdzv-endpoint 10.0.0.1:29400"
        )
    ),
    key_file="/home/me/.local/share/rankdeck/nodes.key",
)


def main(folder: Path) -> int:
    """Takes it."""
    with tempfile.TemporaryDirectory(prefix="rankdeck pictures ", ignore_cleanup_errors=True) as home:
        os.environ["RANKDECK_HOME"] = f"{home}/runs"
        studio = Studio(QApplication([]), Path(home), folder)
        studio.theme.set_dark(False)
        studio.window.resize(1200, 640)
        studio.rankdeck.open()
        page = NodesPage()
        page.show_status(STATUS)
        studio.window.pages.addWidget(page)
        studio.rest(2.0)
        studio.window.show_page(page)
        studio.picture("nodes")
        studio.window.close_now()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else FOLDER))
