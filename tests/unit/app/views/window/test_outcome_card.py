"""The card over the tabs."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from pytestqt.qtbot import QtBot

from app.state.run_outcome import ModelFile, RunOutcome
from app.views.window.actions import Actions
from app.views.window.outcome_card import OutcomeCard
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]

DONE = RunOutcome("success", "Finished in 9 m 50 s. Best validation loss 1.82 at step 950.", "", has_log=False)
FAILED = RunOutcome("error", "GPU 1 ran out of memory", "It needed 3 GB. Halve the micro-batch.", "rank1.log", True)


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    return made


def card_in(window: QWidget, width: int = 1000) -> OutcomeCard:
    card = OutcomeCard(Actions(window), QMenu(window), window)
    window.resize(width, 300)
    card.resize(width, 80)
    window.show()
    return card


def shown(card: OutcomeCard) -> list[str]:
    buttons = (card.show_log, card.show_folder, card.copy_path, card.export, card.resume)
    return [button.text() for button in buttons if not button.isHidden()]


def test_a_finished_run_says_where_its_model_is(window: QWidget) -> None:
    card = card_in(window)
    card.show_outcome(DONE)
    assert card.title == DONE.title and card.text == "" and shown(card) == ["Export", "Resume…"]
    card.show_model(ModelFile("model.safetensors", "/runs/a", 3_400_000))
    QApplication.processEvents()
    assert card.model_line.text == "model.safetensors, 3.4 MB, in /runs/a"
    assert shown(card) == ["Show in folder", "Copy path", "Export", "Resume…"]
    copied: list[str] = []
    card.copy_requested.connect(copied.append)
    card.copy_path.click()
    assert len(copied) == 1 and copied[0].endswith("model.safetensors")


def test_the_card_has_room_for_a_model_that_is_still_looked_for(window: QWidget) -> None:
    for width in (1000, 560):
        card = card_in(window, width)
        # "–" fits into one line with nearly all of these, "3.4 MB" with fewer
        for letters in (4, *range(20, 100), 400):
            folder = "/runs/" + "a" * letters
            card.show_model(ModelFile("model.safetensors", folder, None))
            card.show_outcome(DONE)
            QApplication.processEvents()
            height, buttons = card.heightForWidth(width), shown(card)
            assert card.model_line.text.startswith("model.safetensors, –, in /runs/a")
            assert not card.copy_path.isEnabled()
            card.show_model(ModelFile("model.safetensors", folder, 3_400_000))
            QApplication.processEvents()
            assert (card.heightForWidth(width), shown(card)) == (height, buttons), letters
            assert card.copy_path.isEnabled() and card.show_folder.isEnabled()
            assert card.model_line.text.endswith("aaa"), "the middle of a long path is left out, not its end"
    card.show_model(None)
    assert shown(card) == ["Export", "Resume…"], "there is none after all"


def test_a_failure_offers_its_log_and_its_checkpoint(window: QWidget) -> None:
    card = card_in(window)
    logs: list[str] = []
    card.log_requested.connect(logs.append)
    card.show_outcome(FAILED)
    assert shown(card) == ["Show log", "Resume…"]
    card.show_log.click()
    assert logs == ["rank1.log"]
    card.show_outcome(RunOutcome("error", "No", "", None, True, resume_step=450))
    assert shown(card) == ["Show log", "Resume from step 450…"]
    card.show_outcome(RunOutcome("error", "No", "", None))
    assert shown(card) == ["Show log"]


def test_it_says_that_it_was_dismissed(window: QWidget) -> None:
    card = card_in(window)
    gone: list[bool] = []
    card.dismissed.connect(lambda: gone.append(True))
    card.show_outcome(FAILED)
    card.close_button.click()
    assert gone == [True] and card.isHidden() and card.title == ""


def test_text_is_never_squeezed_beside_the_buttons(window: QWidget) -> None:
    for width in (1000, 560):
        card = card_in(window, width)
        card.show_outcome(DONE)
        card.show_model(ModelFile("model.safetensors", "/runs/a", 3_400_000))
        QApplication.processEvents()
        card.resize(width, card.heightForWidth(width))
        QApplication.processEvents()
        assert card.model_line.width() >= 300, width
