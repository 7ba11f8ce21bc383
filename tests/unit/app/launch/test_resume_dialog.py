"""The resume dialog against real run folders: it says what will happen before it happens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtWidgets import QApplication, QComboBox, QFileDialog, QPushButton
from pytestqt.qtbot import QtBot

from app.draft.draft import Draft, mode_changes
from app.launch import resume_dialog
from app.launch.resume_choices import TrainingPlace
from app.launch.resume_dialog import ResumeDialog
from core.errors import DatasetError, RankdeckError
from core.machine.devices import Device
from core.machine.devices.monitor import DeviceMonitor
from core.processes import identity
from core.resume.planner import ResumePlan, plan_resume
from core.run_folder.store import list_runs
from tests.helpers.made_runs import TEXT, make_run
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows, pytest.mark.usefixtures("checked_here")]


DDP = {"mode": "ddp"}


def opened(
    runs_dir: Path, qtbot: QtBot, mode: Mapping[str, str] = DDP, *places: TrainingPlace, is_shown: bool = False
) -> ResumeDialog:
    """The dialog on a folder of runs, with its requests answered at once as by the controller."""
    dialog = ResumeDialog(list_runs(runs_dir), mode, places or (TrainingPlace(),))
    qtbot.addWidget(dialog)

    def answer(text: str, changes: dict[str, object], _machine: str) -> None:
        try:
            with DeviceMonitor() as monitor:
                accepted = bool(changes.pop("accept_code", False))
                available = monitor.devices()
                dialog.show_plan(plan_resume(text, runs_dir, changes, available=available, accept_code=accepted))
        except RankdeckError as error:
            dialog.show_error(error)

    dialog.plan_requested.connect(answer)
    if is_shown:
        dialog.show()
    return dialog


def pick(box: QComboBox, row: int) -> None:
    """Chooses a row as a person does."""
    box.setCurrentIndex(row)
    box.activated.emit(row)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_bytes(TEXT)
    return tmp_path


def test_it_shows_the_plan_then_asks_for_it(place: Path, runs_dir: Path, qtbot: QtBot) -> None:
    store = make_run(place, runs_dir=runs_dir)
    live = make_run(place, "training", runs_dir=runs_dir)
    live.write_state(live.stored_state().replace(host=identity.own()))
    dialog = opened(runs_dir, qtbot, DDP, TrainingPlace("", (), ["cpu:1"]), is_shown=True)
    assert dialog.form.run.count() == 1, "a live run cannot be resumed"
    assert not dialog.go.isEnabled() and "Choose a run first" in dialog.go.toolTip()
    dialog.choose(str(store.dir))
    words = dialog.message.toPlainText()
    for part in (
        f"Continues {store.dir.name} from step 20 (checkpoint 2).",
        "100 of its 590 samples are trained",
        "epoch 1",
        "Devices: DDP on CPU 0, CPU 1",
    ):
        assert part in words, words
    with qtbot.waitSignal(dialog.resume_requested) as asked:
        dialog.go.click()
    assert isinstance(asked.args[0], ResumePlan) and asked.args[0].run_dir == store.dir


def test_an_older_checkpoint_can_be_chosen(place: Path, runs_dir: Path, qtbot: QtBot) -> None:
    store = make_run(place, checkpoints=3, runs_dir=runs_dir)
    dialog = opened(runs_dir, qtbot, DDP, TrainingPlace("", (), ["cpu:1"]))
    assert not dialog.form.checkpoint.isEnabled()
    dialog.choose(str(store.dir))
    offered = [dialog.form.checkpoint.itemText(row) for row in range(dialog.form.checkpoint.count())]
    assert offered == ["Checkpoint 3 · step 30", "Checkpoint 2 · step 20", "Checkpoint 1 · step 10"]
    pick(dialog.form.checkpoint, 2)
    qtbot.waitUntil(lambda: "their folders are renamed to 2.aside and 3.aside" in dialog.message.toPlainText())
    assert dialog.form.checkpoint.currentData() == 1, "the answer keeps what was chosen"
    with qtbot.waitSignal(dialog.resume_requested) as asked:
        dialog.go.click()
    assert asked.args[0].goes_back and asked.args[0].checkpoint == 1
    dialog.form.run.setEditText("another")
    assert dialog.form.asked()[1] == {}


def test_what_cannot_be_resumed_says_why_inline(place: Path, runs_dir: Path, qtbot: QtBot) -> None:
    store = make_run(place, runs_dir=runs_dir)
    dialog = opened(runs_dir, qtbot, DDP, TrainingPlace("", (), ["cpu:2"]))
    store.ledger.write_text("{", encoding="utf-8")
    dialog.choose(str(store.dir))
    assert dialog.notice.title and "chunk_tracker_state.json" in dialog.notice.text
    assert not dialog.go.isEnabled() and dialog.message.toPlainText() == "Nothing was changed."
    (place / "text.txt").write_bytes(b"another text " * 3000)
    store.ledger.unlink()
    dialog.choose(str(store.dir))
    step = dialog.notice.findChild(QPushButton, "step")
    assert step is not None and "dataset" in step.text(), dialog.notice.text


def test_a_state_file_can_be_opened(place: Path, runs_dir: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make_run(place, runs_dir=runs_dir)
    dialog = opened(runs_dir, qtbot)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_, **__: (str(store.ledger), ""))
    dialog.open_file.click()
    assert dialog.go.isEnabled() and store.dir.name in dialog.message.toPlainText()
    dialog.show_busy()
    assert not dialog.go.isEnabled()


def test_the_mode_of_new_run_can_be_chosen_and_the_plan_follows(place: Path, runs_dir: Path, qtbot: QtBot) -> None:
    store = make_run(place, runs_dir=runs_dir)
    texts = {"zero_stage": "2", "zero_engine": "torch", "offload_optimizer": "false"}
    chosen = mode_changes(Draft(mode="zero", mode_fields=texts))
    dialog = opened(runs_dir, qtbot, chosen, TrainingPlace("", (), ["cpu:2"]))
    dialog.choose(str(store.dir))
    assert (
        dialog.form.mode.itemText(1) == "as in New run: ZeRO, stage 2"
        and "Devices: DDP on" in dialog.message.toPlainText()
    )
    pick(dialog.form.mode, 1)
    assert not dialog.go.isEnabled(), "the plan is void until it is asked for again"
    qtbot.waitUntil(dialog.go.isEnabled)
    for part in ("Devices: ZeRO on CPU 0, CPU 1; it was DDP", "ZeRO stage: 2; it was 1.", "ZeRO engine: torch"):
        assert part in dialog.message.toPlainText(), dialog.message.toPlainText()
    with qtbot.waitSignal(dialog.resume_requested) as asked:
        dialog.go.click()
    assert asked.args[0].config.zero_stage == 2


def test_how_and_how_often_ranks_meet_comes_from_new_run_too() -> None:
    fields = {"balance": "measured", "sync_method": "diloco"}
    apart = mode_changes(Draft(mode="independent", mode_fields={"sync_every": "50"}, fields=fields))
    assert (apart["sync_every"], apart["sync_method"]) == ("50", "diloco")
    ddp = mode_changes(Draft(mode="ddp", fields=fields))
    assert (ddp["balance"], ddp["gradient_exchange"]) == ("measured", "auto") and "sync_method" not in ddp


def test_devices_and_mode_are_chosen_in_the_dialog(place: Path, runs_dir: Path, qtbot: QtBot) -> None:
    store = make_run(place, runs_dir=runs_dir)
    available = [Device(f"cpu:{n}", "cpu", n, "Xeon") for n in range(2)]
    available.append(Device("GPU-a", "cuda", 0, "NVIDIA GeForce RTX 4090"))
    dialog = opened(runs_dir, qtbot, DDP, TrainingPlace("", available, ["cpux2"]))
    dialog.choose(str(store.dir))
    devices = [dialog.form.devices.itemText(row) for row in range(dialog.form.devices.count())]
    assert devices == [
        "unchanged",
        "selected in New run: 2 CPU devices",
        "GPU 0 · RTX 4090",
        "all 2 CPU devices",
        "CPU 0",
    ]
    modes = [dialog.form.mode.itemText(row) for row in range(dialog.form.mode.count())]
    assert modes[:4] == ["unchanged", "as in New run: DDP", "automatic", "DDP"] and "ZeRO, stage 3" in modes
    assert dialog.form.asked()[1] == {}
    pick(dialog.form.mode, modes.index("ZeRO, stage 2"))
    assert dialog.form.asked()[1] == {"mode": "zero", "zero_stage": "2"}
    pick(dialog.form.devices, 4)
    assert dialog.form.asked()[1] == {"devices": "cpu:0", "mode": "single"}
    qtbot.waitUntil(dialog.go.isEnabled)
    assert "Devices: CPU 0 alone; it was DDP on CPU 0, CPU 1." in dialog.message.toPlainText()


def test_code_that_a_run_brings_is_named_and_has_to_be_trusted(qtbot: QtBot, place: Path) -> None:
    recipe = place / "elsewhere" / "theirs"
    recipe.mkdir(parents=True)
    manifest = 'format = "rankdeck-recipe"\nversion = 1\nname = "theirs"\ntitle = "Theirs"\n'
    (recipe / "recipe.toml").write_text(manifest, encoding="utf-8")
    (recipe / "train.py").write_text("raise SystemExit\n", encoding="utf-8")
    theirs = make_run(place, recipe=str(recipe), options={})
    ours = make_run(place)
    dialog = opened(place, qtbot, is_shown=True)
    dialog.choose(str(theirs.dir))
    assert f"uses the recipe code in {recipe.resolve()}. It runs with your permissions." in dialog.message.toPlainText()
    assert dialog.form.trust.isVisible() and not dialog.go.isEnabled()
    assert dialog.message.cursorRect().bottom() <= dialog.message.viewport().height(), "what is agreed to is in sight"
    dialog.form.trust.click()
    qtbot.waitUntil(dialog.go.isEnabled)
    with qtbot.waitSignal(dialog.resume_requested) as agreed:
        dialog.go.click()
    assert agreed.args is not None and agreed.args[0].code_accepted
    dialog.choose(str(ours.dir))
    assert not dialog.form.trust.isVisible() and not dialog.form.trust.isChecked() and dialog.go.isEnabled()
    dialog.choose(str(theirs.dir))
    assert dialog.form.trust.isVisible() and not dialog.go.isEnabled()


def test_a_finished_run_asks_for_a_larger_step_and_suggests_one(place: Path, runs_dir: Path, qtbot: QtBot) -> None:
    done = make_run(place, "finished", runs_dir=runs_dir)
    done.write_state(done.stored_state().replace(total_steps=20))
    stopped = make_run(place, runs_dir=runs_dir)
    dialog = opened(runs_dir, qtbot, is_shown=True)
    dialog.choose(str(done.dir))
    steps = dialog.form.steps
    assert steps.text() == "40" and steps.selectedText() == "40" and dialog.focusWidget() is steps
    assert dialog.form.steps_hint.text() == "The run finished at step 20. To train further, enter a larger number."
    assert dialog.go.isEnabled() and "Trains until step 40." in dialog.message.toPlainText()
    dialog.choose(str(stopped.dir))
    assert dialog.form.steps.text() == "" and dialog.form.steps_hint.isHidden()
    dialog.form.steps.setText("77")
    dialog.choose(str(done.dir))
    assert dialog.form.steps.text() == "77", "what was typed stays"


def test_how_the_learning_rate_continues_can_be_chosen(place: Path, runs_dir: Path, qtbot: QtBot) -> None:
    store = make_run(place, "finished", runs_dir=runs_dir, lr_rule={"peak": 2e-3, "warmup_steps": 5})
    dialog = opened(runs_dir, qtbot)
    dialog.choose(str(store.dir))
    assert "Learning rate: 0.0002 now, 0.0002 at step 21" in dialog.message.toPlainText()
    pick(dialog.form.schedule, dialog.form.schedule.findData("replan"))
    qtbot.waitUntil(lambda: "0.0002 now, 0.00197 at step 21" in dialog.message.toPlainText())
    assert dialog.form.asked()[1] == {"steps": "200", "lr_schedule": "replan"}
    other = make_run(place, runs_dir=runs_dir)
    dialog.choose(str(other.dir))
    assert "lr_schedule" not in dialog.form.asked()[1], "it holds for the run that it was chosen for"


def test_tab_goes_from_the_run_down_to_the_button(place: Path, runs_dir: Path, qtbot: QtBot) -> None:
    store = make_run(place, runs_dir=runs_dir, checkpoints=2)
    dialog = opened(runs_dir, qtbot, is_shown=True)
    dialog.choose(str(store.dir))
    dialog.form.run.setFocus()
    passed = []
    for _ in range(9):
        passed.append(dialog.focusWidget())
        dialog.focusNextChild()
    cancel, form = dialog.buttons.button(dialog.buttons.StandardButton.Cancel), dialog.form
    fields = [form.run, form.checkpoint, form.steps, form.schedule, form.mode, form.devices]
    assert passed == [*fields, dialog.message, dialog.go, cancel]


def test_the_dataset_is_asked_for_only_where_it_is_needed(place: Path, runs_dir: Path, qtbot: QtBot) -> None:
    store = make_run(place, runs_dir=runs_dir)
    dialog = opened(runs_dir, qtbot, is_shown=True)
    dialog.choose(str(store.dir))
    assert not dialog.form.data.isVisible()
    (place / "text.txt").rename(place / "moved.txt")
    dialog.choose(str(store.dir))
    assert dialog.form.data.isVisible()
    dialog.form.data.setText(str(place / "moved.txt"))
    dialog._ask()
    assert dialog.go.isEnabled(), dialog.notice.text


def test_on_a_small_screen_the_form_scrolls_and_what_must_be_confirmed_stays(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = QSize(560, 508)
    monkeypatch.setattr(resume_dialog, "room_for", lambda _: room)
    dialog = ResumeDialog([], DDP)
    qtbot.addWidget(dialog)
    dialog.show()
    QApplication.processEvents()
    assert dialog.height() == 500 and not dialog.body.verticalScrollBar().maximum()
    dialog.show_error(DatasetError("The dataset is not there any more. " * 5, "Say where it is now. " * 5))
    dialog.form.show_field(dialog.form.chunk_size, True)
    dialog.form.trust.show()
    qtbot.waitUntil(lambda: dialog.height() == room.height())
    QApplication.processEvents()
    assert dialog.body.verticalScrollBar().maximum() > 0 and dialog.height() == room.height()
    for part in (dialog.form.trust, dialog.go):
        assert dialog.rect().contains(QRect(part.mapTo(dialog, QPoint(0, 0)), part.size()))


def test_it_offers_other_machines(place: Path, runs_dir: Path, qtbot: QtBot) -> None:
    here, there = make_run(place, runs_dir=runs_dir), make_run(place, runs_dir=runs_dir)
    gpus = [Device("GPU-1", "cuda", 0, "A100"), Device("GPU-2", "cuda", 1, "A100")]
    places = [TrainingPlace("", (), ["cpu:1"]), TrainingPlace("box"), TrainingPlace("other")]
    dialog = ResumeDialog(list_runs(runs_dir), DDP, places, {there.dir: "box"})
    qtbot.addWidget(dialog)
    dialog.show()
    asked: list[tuple[object, ...]] = []
    dialog.plan_requested.connect(lambda *question: asked.append(question))
    dialog.choose(str(here.dir))
    assert dialog.form.where.isVisible() and dialog.form.where.currentText() == "This computer"
    dialog.choose(str(there.dir))
    assert dialog.form.where.currentText() == "box" and asked[-1] == (str(there.dir), {}, "box"), "it stays where it is"
    assert dialog.form.devices.count() == 1
    dialog.form.set_place(TrainingPlace("box", gpus, ["GPU-2"]))
    offered = [dialog.form.devices.itemText(row) for row in range(dialog.form.devices.count())]
    assert "all 2 GPUs" in offered and any(text.startswith("selected in New run") for text in offered)
    pick(dialog.form.devices, offered.index("all 2 GPUs"))
    qtbot.waitUntil(lambda: asked[-1][1] == {"devices": "GPU-1,GPU-2"})
    pick(dialog.form.where, 2)
    assert dialog.form.devices.count() == 1 and dialog.form.devices.currentData() is None, "its devices are others"
    qtbot.waitUntil(lambda: asked[-1] == (str(there.dir), {}, "other"))
    alone = ResumeDialog(list_runs(runs_dir), DDP)
    qtbot.addWidget(alone)
    alone.show()
    assert not alone.form.where.isVisible()
