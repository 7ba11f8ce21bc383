"""The Slurm dialog: what it asks for."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.views.dialogs.slurm_dialog import SlurmDialog
from core.launch.slurm.batch_file import SlurmRequest
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


def test_the_least_number_of_nodes_is_all_of_them_until_it_is_chosen(qtbot: QtBot) -> None:
    dialog = SlurmDialog()
    qtbot.addWidget(dialog)
    assert not dialog.least.isEnabled() and not dialog.nic.isEnabled()
    dialog.nodes.setValue(4)
    assert dialog.least.isEnabled() and dialog.nic.isEnabled() and dialog.least.value() == 4
    dialog.least.setValue(2)
    dialog.nodes.setValue(8)
    assert dialog.least.value() == 2
    dialog.nodes.setValue(1)
    assert dialog.least.value() == 1


def test_all_that_is_filled_in_is_asked_for(qtbot: QtBot) -> None:
    dialog = SlurmDialog()
    qtbot.addWidget(dialog)
    dialog.show_cpu_devices(2)
    asked: list[SlurmRequest] = []
    dialog.submit_requested.connect(asked.append)
    dialog.submit.click()
    assert asked.pop() == SlurmRequest(gpus_per_node=1)
    dialog.nodes.setValue(4)
    dialog.least.setValue(2)
    dialog.gpus.setValue(0)
    for editor, text in (
        (dialog.partition, "long"), (dialog.account, " team "), (dialog.time_limit, "8:00:00"), (dialog.nic, "ib0"),
    ):  # fmt: skip
        editor.setText(text)
    dialog.submit.click()
    assert asked.pop() == SlurmRequest(
        2, 4, nic="ib0", cpus_per_task=2, partition="long", time_limit="8:00:00", account="team"
    )
