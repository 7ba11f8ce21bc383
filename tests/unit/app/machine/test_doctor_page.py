"""The page that checks this machine: rows, buttons, keyboard, names for screen readers."""

from __future__ import annotations

from typing import get_args

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.machine.doctor_page import FIXES, GROUPS, LEVELS, DoctorPage
from core.doctor import finding
from core.doctor.devices import NO_CUDA
from core.doctor.finding import FOLDERS, MACHINE, SELF_TESTS, Finding, Fix, Level, Topic
from core.doctor.modes import check_modes
from core.machine.devices import Device
from core.machine.platform import Platform
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
SLEEP = Topic("sleep", "Sleep", MACHINE, "A computer that sleeps trains nothing.")
RUNS = Topic("runs_folder", "Runs folder", FOLDERS, "Runs write checkpoints here.")
TEST = Topic("link_gloo", "gloo between two processes", SELF_TESTS, "DDP needs it.")


@pytest.fixture
def page(qtbot: QtBot) -> DoctorPage:
    """A page that is shown."""
    page = DoctorPage()
    qtbot.addWidget(page)
    page.resize(640, 480)
    page.show()
    qtbot.waitExposed(page)
    return page


def findings() -> list[Finding]:
    """One that is well, and one to mend."""
    return [SLEEP.ok("never"), RUNS.fail("/x cannot be written", "Choose another folder.", "choose_runs_folder")]


def test_lines_say_what_they_mean_and_what_to_do(page: DoctorPage, qtbot: QtBot) -> None:
    assert not page.run_tests.isEnabled() and "Checking" in page.about.full_text
    page.show_findings(findings())
    assert page.about.full_text == "1 problem: Runs folder" and page.run_tests.isEnabled()
    well, wrong = page.rows["sleep"], page.rows["runs_folder"]
    assert well.fix.isHidden() and well.next_step.isHidden() and well.text.text() == "Never"
    assert "Choose another folder." in wrong.next_step.text()
    assert wrong.accessibleName().startswith("Runs folder: failed. /x cannot be written.")
    assert wrong.fix.accessibleName() == "Choose folder… (Runs folder)"
    with qtbot.waitSignal(page.fix_requested) as asked:
        wrong.fix.click()
    assert asked.args[0].fix == "choose_runs_folder"


def test_one_cause_is_one_card_with_one_remedy(page: DoctorPage, qtbot: QtBot) -> None:
    page.resize(900, 700)
    gpus, platform = [Device("GPU-0", "cuda", 0, "NVIDIA RTX 4090", 24 << 30)], Platform("linux", "2.13.0+cpu", None, 8)
    cpus = [Device(f"cpu:{number}", "cpu", number, f"CPU {number}") for number in range(2)]
    cause = Topic("gpus", "GPUs", "Devices", "A rank trains on one GPU.")
    told = cause.warn("RTX 4090; driver 581", "Install it.", "install_cuda", cause=NO_CUDA)
    page.show_findings([SLEEP.ok("never"), told, *check_modes(gpus, cpus, platform, {})])
    assert page.about.full_text == "1 problem: PyTorch cannot use your GPUs"
    (card,) = page.problems
    assert card.fix.text() == "Install GPU build…" and card.affects.text().startswith("Affects One device, DDP")
    with qtbot.waitSignal(page.fix_requested) as asked:
        card.fix.click()
    assert asked.args[0] is told
    suffers = [row for name, row in page.rows.items() if row.finding.cause]
    assert len(suffers) > 6 and not any(row.fix.isVisible() or row.next_step.isVisible() for row in suffers)
    assert page.rows["mode_ddp"].word.text() == "Limited"
    modes = [row for name, row in page.rows.items() if name.startswith("mode_")]
    qtbot.waitUntil(lambda: max(row.height() for row in modes) < 40)  # they are a table
    page.show_findings([SLEEP.ok("never"), cause.ok("RTX 4090")])
    assert page.problems == [] and page.about.full_text == "No problems: 2 checks passed"


def test_newer_results_take_the_place_of_older_ones(page: DoctorPage, qtbot: QtBot) -> None:
    page.show_findings(findings())
    row = page.rows["runs_folder"]
    page.show_findings([SLEEP.ok("never"), RUNS.ok("/x, 9 GiB free"), TEST.ok("900 MB/s")])
    assert page.rows["runs_folder"] is row and row.fix.isHidden() and row.next_step.isHidden()
    qtbot.waitUntil(page.rows["link_gloo"].isVisible)
    assert page._idle.isHidden()
    page.show_findings([SLEEP.ok("never")])
    assert list(page.rows) == ["sleep"] and page._idle.isVisibleTo(page)


def test_self_tests_show_their_progress_and_can_be_cancelled(page: DoctorPage, qtbot: QtBot) -> None:
    page.show_findings(findings())
    page.run_tests.setFocus()
    with qtbot.waitSignal(page.self_tests_requested):
        page.run_tests.click()
    page.show_testing("gloo between two processes", 2, 5)
    assert "(2 of 5)" in page.doing.full_text and (page.bar.value(), page.bar.maximum()) == (1, 5)
    assert page.cancel.hasFocus() and not page.run_tests.isEnabled() and not page.diagnostics.isEnabled()
    with qtbot.waitSignal(page.cancel_requested):
        page.cancel.click()
    assert not page.cancel.isEnabled() and "Ending" in page.doing.full_text
    page.show_tested()
    assert page.run_tests.isEnabled() and not page.cancel.isVisible()


def test_keys(page: DoctorPage, qtbot: QtBot) -> None:
    page.show_findings(findings())
    with qtbot.waitSignal(page.close_requested):
        qtbot.keyClick(page, Qt.Key.Key_Escape)
    qtbot.waitUntil(page.rows["runs_folder"].fix.isVisible)
    order: list[QWidget] = []
    page.setFocus()
    for _ in range(6):
        page.focusNextChild()
        focused = QApplication.focusWidget()
        assert focused is not None
        order.append(focused)
    expected = [page.close_button, page.run_tests, page.check, page.diagnostics]
    places = [order.index(button) for button in expected if button in order]
    assert len(places) == len(expected) and places == sorted(places), order
    assert page.rows["runs_folder"].fix in order and page.rows["sleep"].fix not in order


def test_every_fix_has_a_button_and_every_level_a_look() -> None:
    assert set(FIXES) == set(get_args(Fix)) - {""} and all(FIXES.values())
    assert set(LEVELS) == set(get_args(Level)) and set(GROUPS) == set(finding.GROUPS)
