"""The card below the tabs, and the line in the header."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QAbstractButton, QApplication, QMenu, QWidget
from pytestqt.qtbot import QtBot

from app.actions.actions import Actions
from app.run.outcome_card import OutcomeCard
from app.run.run_header import RunHeader
from app.run.run_outcome import ModelFile, RunOutcome
from app.run.run_page import RunPage
from app.run_tabs.run_tabs import RunTabs
from app.shown_run.rank_log import RankLog
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]

DONE = RunOutcome("success", "Finished in 9 m 50 s. Best validation loss 1.82 at step 950.", "", has_log=False)
FAILED = RunOutcome("error", "GPU 1 ran out of memory", "It needed 3 GB. Halve the micro-batch.", "rank1.log")


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    return made


def card_in(window: QWidget, width: int = 1000) -> OutcomeCard:
    card = OutcomeCard(window)
    card.line.setParent(window)
    window.resize(width, 300)
    card.resize(width, 80)
    card.line.resize(width, card.line.height())
    window.show()
    return card


def shown(card: OutcomeCard) -> list[str]:
    return [button.text() for button in card.findChildren(QAbstractButton) if not button.isHidden() and button.text()]


def chips(card: OutcomeCard) -> list[str]:
    line = card.line
    return [button.text() for button in (line.show_log, line.show_folder, line.copy_path) if not button.isHidden()]


def test_a_finished_run_is_a_line_that_says_where_its_model_is(window: QWidget) -> None:
    card = card_in(window)
    card.show_outcome(DONE, "failed")
    assert card.isHidden() and card.line.isVisible() and chips(card) == []
    card.show_model(ModelFile("model.safetensors", "/runs/a", None))
    assert chips(card) == ["Show in folder", "Copy path"] and not card.line.copy_path.isEnabled()
    card.show_model(ModelFile("model.safetensors", "/runs/a", 3_400_000))
    assert card.line.title.full_text == DONE.title
    assert card.line.model.full_text == "model.safetensors, 3.4 MB, in /runs/a"
    copied: list[str] = []
    card.copy_requested.connect(copied.append)
    card.line.copy_path.click()
    assert len(copied) == 1 and copied[0].endswith("model.safetensors")
    card.show_outcome(FAILED, "failed")
    assert card.isVisible() and card.line.isHidden()


def test_the_line_takes_the_place_of_the_progress(window: QWidget) -> None:
    card, actions = card_in(window), Actions(window)
    header = RunHeader(actions, QMenu(window), QMenu(window), window)
    header.place_outcome(card.line)
    header.resize(900, header.sizeHint().height())
    header.show()
    QApplication.processEvents()
    before, heroes = header.sizeHint().height(), header.heroes.pos()
    card.show_outcome(DONE, "failed")
    QApplication.processEvents()
    assert not header.bar.isVisible() and card.line.isVisible()
    assert (header.sizeHint().height(), header.heroes.pos()) == (before, heroes), "nothing moves at the end"
    card.clear()
    assert header.bar.isVisible()


def test_a_failure_offers_its_log_and_no_second_resume_button(window: QWidget) -> None:
    card = card_in(window)
    logs: list[str] = []
    card.log_requested.connect(logs.append)
    card.show_outcome(FAILED, "failed")
    assert shown(card) == ["Show log"]
    card.show_log.click()
    assert logs == ["rank1.log"]


@pytest.mark.parametrize("outcome", [FAILED, RunOutcome("warning", "Low disk", "4 GB are left. Free some.")])
def test_a_card_does_not_move_the_tabs_or_their_controls(window: QWidget, outcome: RunOutcome) -> None:
    actions, card = Actions(window), OutcomeCard()
    header, tabs = RunHeader(actions, QMenu(window), QMenu(window)), RunTabs(RankLog(window))
    page = RunPage(header, card, tabs, window)
    page.resize(1000, 600)
    window.resize(1000, 600)
    window.show()
    QApplication.processEvents()
    before = (tabs.pos(), header.geometry(), tabs.tabBar().geometry())
    card.show_outcome(outcome, "failed")
    QApplication.processEvents()
    assert card.isVisible() and card.geometry().top() > tabs.geometry().bottom()
    assert (tabs.pos(), header.geometry(), tabs.tabBar().geometry()) == before


def test_a_dismissed_card_stays_away_until_the_state_changes(window: QWidget) -> None:
    card = card_in(window)
    card.show_outcome(FAILED, "running")
    card.close_button.click()
    assert card.isHidden() and card.title == ""
    card.show_outcome(FAILED, "running")
    assert card.isHidden()
    card.show_outcome(FAILED, "failed")
    assert card.isVisible()
