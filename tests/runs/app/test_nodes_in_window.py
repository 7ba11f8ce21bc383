"""Several machines in the window: it waits, says who was refused and why, and shows the run as any other."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from app.views.nodes.nodes_page import NodesPage
from core.config.mode import Mode
from core.launch.nodes.key import key_file
from tests.helpers.launched import wait
from tests.helpers.net_nodes import ADDRESSES, NO_NODES, NetNodes
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow, shut

pytestmark = [
    OFFSCREEN_NOISE,
    pytest.mark.spawned,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(NO_NODES), reason=NO_NODES),
]
SOON_MS = 30_000
LONG_MS = 120_000
OTHER_VERSION = (
    "import core, sys; core.__version__ = '9.9'; from core.cli.entry import main; sys.exit(main(sys.argv[1:]))"
)


@pytest.fixture(autouse=True)
def _on_the_first(nodes: NetNodes) -> Iterator[None]:
    """The window is on the first machine."""
    with nodes.entered(0):
        yield


def ask_for_two(rankdeck: Rankdeck, nodes: NetNodes, qtbot: QtBot) -> NodesPage:
    """Fills New run as a user does, and starts."""
    window = rankdeck.window
    sheet, group = window.new_run, window.new_run.nodes
    for name, text in {
        "steps": "6",
        "seq_len": "16",
        "batch_size": "2",
        "n_layer": "1",
        "n_embd": "16",
        "n_head": "2",
    }.items():
        sheet.set_field(name, text)
    sheet.devices.select(["cpu:0"])
    assert not group.machines.isVisible(), "folded away"
    group.toggle.click()
    qtbot.waitUntil(lambda: group.nic.findData(nodes.nics[0]) >= 0, timeout=SOON_MS)
    group.machines.setValue(2)
    assert group.least.value() == 0, "all of them, unless fewer will do"
    group.nic.setCurrentIndex(group.nic.findData(nodes.nics[0]))
    group.nic.activated.emit(group.nic.currentIndex())
    qtbot.waitUntil(window.actions_.start.isEnabled, timeout=SOON_MS)
    assert f"--nodes 2 --nic {nodes.nics[0]}" in sheet.summary.command.text()
    assert sheet.summary.arithmetic.text() == "Global batch 4 = 2 × 2 × 1 on 2 machines"
    sheet.mode.radios[Mode.FSDP].click()  # which needs two devices, of which one is here
    qtbot.waitUntil(lambda: "--mode fsdp" in sheet.summary.command.text(), timeout=SOON_MS)
    assert window.actions_.start.isEnabled()
    window.actions_.start.trigger()
    qtbot.waitUntil(lambda: rankdeck.nodes.status is not None, timeout=SOON_MS)
    page = rankdeck.nodes.page
    assert page is not None and window.pages.currentWidget() is page
    return page


def test_a_run_waits_for_another_machine_and_says_why_one_was_refused(
    nodes: NetNodes, open_sheet: OpenWindow, runs_dir: Path, qtbot: QtBot
) -> None:
    """Pasted on the other machine with another version, then with the same."""
    rankdeck = open_sheet()
    window = rankdeck.window
    page = ask_for_two(rankdeck, nodes, qtbot)
    assert page.title.text() == "1 of 2 machines" and not window.actions_.start.isEnabled()
    page.copy.click()
    folder, line = QGuiApplication.clipboard().text().split(" && ")
    arguments = shlex.split(line)[1:]
    assert folder == f"cd {shlex.quote(str(runs_dir))}" and arguments[-2:] == [
        "--rdzv-endpoint",
        f"{ADDRESSES[0]}:29400",
    ]

    nodes.key(1, key_file().read_text(encoding="utf-8"))
    shell = ["sh", "-c", f'{folder} && exec "$@"', "sh", sys.executable]
    other = nodes.start_command(1, *shell, "-c", OTHER_VERSION, *arguments)
    assert other.end() == 1 and "Rankdeck differs: 9.9" in other.output, other.output
    qtbot.waitUntil(lambda: len(page.cards) == 2, timeout=SOON_MS)
    assert page.cards[1].badge.text() == "refused"
    assert "9.9" in page.cards[1].about.text() and "Install the same Rankdeck" in page.cards[1].about.text()
    assert page.title.text() == "1 of 2 machines"

    other = nodes.start_command(1, *shell, "-m", "core", *arguments)
    qtbot.waitUntil(lambda: rankdeck.showing.run_dir is not None, timeout=LONG_MS)
    assert window.pages.currentWidget() is window.run_page
    state = lambda: rankdeck.data.state  # noqa: E731
    qtbot.waitUntil(lambda: state() is not None and state().state == "finished", timeout=LONG_MS)
    assert len(state().nodes) == 2 and (state().world_size, state().mode) == (2, "fsdp")
    assert "2 machines" in window.header.about.full_text
    assert other.end() == 0, other.output
    assert 'nodes = "2"' in (rankdeck.showing.run_dir / "run.toml").read_text(encoding="utf-8")


def test_cancelling_and_closing_leave_nothing(
    nodes: NetNodes, open_sheet: OpenWindow, runs_dir: Path, qtbot: QtBot
) -> None:
    rankdeck = open_sheet()
    page = ask_for_two(rankdeck, nodes, qtbot)
    page.close_requested.emit()
    group = rankdeck.window.new_run.nodes
    rankdeck.window.actions_.new_run.setChecked(True)
    assert rankdeck.window.pages.currentWidget() is not page and not group.waiting.isHidden()
    group.waiting.click()
    assert rankdeck.window.pages.currentWidget() is page
    page.cancel.click()
    qtbot.waitUntil(lambda: not rankdeck.launching.busy, timeout=SOON_MS)
    assert rankdeck.window.pages.currentWidget() is not page and group.waiting.isHidden()
    rankdeck.window.actions_.start.trigger()
    qtbot.waitUntil(lambda: rankdeck.nodes.status is not None, timeout=SOON_MS)
    assert nodes.processes(0, "-m core train") != []
    shut(rankdeck)
    wait(lambda: nodes.processes(0, "-m core train") == [], "the end of the command")
    assert [path.name for path in runs_dir.iterdir() if path.is_dir() and (path / "run.toml").exists()] == []
