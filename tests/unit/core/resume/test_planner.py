"""What resuming would do: for runs of ours, damaged ones, and AI-OS's state files. Nothing is ever changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.checkpoints.state_header import read_values
from core.checkpoints.store import CheckpointStore
from core.errors import (
    ConfigError,
    DatasetError,
    RankdeckError,
    RunBusyError,
    RunNotFoundError,
    StateFileError,
    UsageError,
)
from core.machine.devices import Device
from core.machine.platform import Platform
from core.resume.planner import ResumePlan, plan_resume
from core.run_folder.store import RunStore
from tests.helpers.made_runs import CHUNK, TEXT, aios_file, make_run, tree, write_values

pytestmark = [pytest.mark.windows, pytest.mark.usefixtures("checked_here")]

LINUX = Platform("linux", "2.13.0+cpu", None, 4)
SLOTS = [Device(f"cpu:{n}", "cpu", n, "Processor") for n in range(4)]


def plan(text: str | Path, runs_dir: Path, **changes: Any) -> ResumePlan:
    """A plan that has changed nothing on disk."""
    before = tree(runs_dir)
    try:
        return plan_resume(str(text), runs_dir, changes, available=SLOTS, platform=LINUX)
    finally:
        assert tree(runs_dir) == before


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_bytes(TEXT)
    return tmp_path


def test_a_stopped_run_goes_on_from_its_newest_checkpoint(runs: Path) -> None:
    store = make_run(runs)
    result = plan(store.dir, runs)
    assert (result.run_dir, result.checkpoint, result.step) == (store.dir, 2, 20)
    assert result.config == store.config()
    assert result.progress is not None
    assert (result.progress.chunks_done, result.progress.chunks_total) == (2, 12)
    assert result.lines() == [
        f"Continues {store.dir.name} from step 20 (checkpoint 2).",
        "Data: epoch 1; 100 of its 590 samples are trained. None is trained twice.",
        "Trains until step 100.",
        "Devices: DDP on CPU 0, CPU 1.",
    ]


@pytest.mark.parametrize("name", ["id", "start of the id", "state file", "copy in a checkpoint"])
def test_a_run_goes_by_several_names(runs: Path, name: str) -> None:
    store = make_run(runs)
    text = {
        "id": store.dir.name,
        "start of the id": store.dir.name[:-1],
        "state file": str(store.ledger),
        "copy in a checkpoint": str(store.checkpoints / "1" / "chunk_tracker_state.json"),
    }[name]
    assert plan(text, runs).run_dir == store.dir


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(runs: Path) -> None:
    store = make_run(runs)
    (store.checkpoints / "2" / "weights0.safetensors").write_bytes(b"x" * 100)
    result = plan(store.dir, runs)
    assert (result.checkpoint, result.step) == (1, 10)
    assert result.progress is not None and result.progress.chunks_done == 1
    assert any("Not used: checkpoint 2" in line and "SHA-256" in line for line in result.lines())


@pytest.mark.parametrize(
    ("lost", "words"), [("", "missing, though it was committed"), ("1/weights0.safetensors", "Every checkpoint")]
)
def test_without_a_whole_checkpoint_nothing_begins_anew_unasked(runs: Path, lost: str, words: str) -> None:
    store = make_run(runs, checkpoints=1)
    (store.checkpoints / lost).rename(runs / "elsewhere")
    with pytest.raises(StateFileError, match=words) as caught:
        plan(store.dir, runs)
    assert "copy of that folder" in caught.value.next_step


def test_a_run_that_never_committed_begins_again(runs: Path) -> None:
    result = plan(make_run(runs, "failed", checkpoints=0).dir, runs)
    assert (result.checkpoint, result.step, result.progress) == (None, 0, None)
    assert "Weights: there is no checkpoint, so the run starts with fresh ones." in result.lines()


def test_a_missing_top_level_file_is_no_obstacle(runs: Path) -> None:
    store = make_run(runs)
    store.ledger.unlink()
    assert plan(store.dir, runs).checkpoint == 2


def test_a_live_run_is_busy(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.resume.own_run.HOST_LEAVES_S", 0.2)
    store = make_run(runs)
    with store.lock(), pytest.raises(RunBusyError, match=r"stopped|live"):
        plan_resume(str(store.dir), runs, available=SLOTS, platform=LINUX)


def test_a_finished_run_has_nothing_left_but_can_be_given_more(runs: Path) -> None:
    store = make_run(runs, "finished")
    with pytest.raises(RankdeckError, match="20 steps") as caught:
        plan(store.dir, runs)
    assert caught.value.exit_code == 2
    assert "--steps" in caught.value.next_step
    assert plan(store.dir, runs, steps="150").config.steps == 150
    epochs = plan(store.dir, runs, epochs="2").config
    assert (epochs.steps, epochs.epochs) == (None, 2)
    with pytest.raises(ConfigError, match="20 steps already"):
        plan(store.dir, runs, steps="20")


def rate_line(store: RunStore, runs: Path, **changes: Any) -> str:
    (line,) = [line for line in plan(store.dir, runs, **changes).lines() if line.startswith("Learning rate: ")]
    return line


def test_the_plan_has_the_learning_rate_now_and_next(runs: Path) -> None:
    store = make_run(runs, "finished", lr_rule={"peak": 2e-3, "warmup_steps": 5}, steps=20, lr=2e-3)
    rates = {
        "": "0.0002 now, 0.0002 at step 21, 0.0002 at step 40; continues from the current rate.",
        "decay": "0.0002 now, 0.000199 at step 21, 2e-05 at step 40; decays again from the current rate.",
        "restart": "0.0002 now, 0.0004 at step 21, 0.0002 at step 40; warm-up and decay start again.",
        "replan": "0.0002 now, 0.00122 at step 21, 0.0002 at step 40; planned again over all steps.",
    }
    for choice, text in rates.items():
        chosen = {"lr_schedule": choice} if choice else {}
        assert rate_line(store, runs, steps="40", **chosen) == f"Learning rate: {text}"
    assert "0.0002 now, 0.0002 at step 21, 0.0002 at step 88;" in rate_line(store, runs, epochs="2")
    earlier = rate_line(store, runs, steps="40", checkpoint="1")
    assert earlier.startswith("Learning rate: 0.00155 now, 0.00149 at step 11, 0.0002 at step 40"), "not finished there"
    peak = plan(store.dir, runs, steps="40", lr="1e-3").lines()
    assert "Learning rate: 0.0002 now, 0.0001 at step 21, 0.0001 at step 40; continues from the current rate." in peak
    assert "Learning rate: 0.001; it was 0.002. It is the peak of the schedule." in peak


def test_a_choice_of_schedule_holds_for_one_resume(runs: Path) -> None:
    store = make_run(runs, "finished", lr_schedule="replan")
    assert plan(store.dir, runs, steps="150").config.lr_schedule == "continue"
    assert plan(store.dir, runs, epochs="2").config.lr_schedule == "continue"
    assert plan(store.dir, runs, steps="150", lr_schedule="decay").config.lr_schedule == "decay"
    stopped = make_run(runs, lr_schedule="replan")
    assert plan(stopped.dir, runs).config.lr_schedule == "replan", "killed before its first checkpoint, it is the same"


def test_a_rate_that_has_decayed_to_zero_is_not_continued(runs: Path) -> None:
    rule = {"peak": 2e-3, "warmup_steps": 5, "min_lr_ratio": 0.0}
    store = make_run(runs, "finished", lr_rule=rule, steps=20)
    with pytest.raises(UsageError) as caught:
        plan(store.dir, runs)
    assert caught.value.next_step.endswith("--steps 40 --lr-schedule restart")
    for choice in ("continue", "decay"):
        with pytest.raises(ConfigError, match="decayed to 0 at step 20"):
            plan(store.dir, runs, steps="40", lr_schedule=choice)
    assert "0 now, 0.0004 at step 21" in rate_line(store, runs, steps="40", lr_schedule="restart")


def test_older_checkpoints_take_the_rule_from_the_options(runs: Path) -> None:
    options = {"warmup_steps": 5, "min_lr_ratio": 0.1}
    store = make_run(runs, lr_rule={}, steps=20, lr=2e-3, options=options)
    edit_counters(store, lambda counters: counters.pop("lr_rule"))
    assert "0.0002 now, 0.0002 at step 21" in rate_line(store, runs, steps="40")
    edit_counters(store, lambda counters: counters.update(schedule={"ends": "many", "asked": 5}))
    assert not any("Learning rate" in line for line in plan(store.dir, runs, steps="40").lines())


def edit_counters(store: RunStore, change: Callable[[dict[str, Any]], Any]) -> None:
    """Changes what the newest checkpoint says of its counters."""
    folder = store.checkpoints / "2"
    values = dict(read_values(folder / "rank0.safetensors"))
    change(values["counters"])
    file = write_values(folder / "rank0.safetensors", values)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["files"][file.name] = {"size": file.size, "sha256": file.sha256}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def test_more_or_fewer_ranks_go_on_with_the_same_weights(runs: Path) -> None:
    result = plan(make_run(runs).dir, runs, devices="cpu:1")
    assert (result.mode_now, result.devices_now) == ("single", ("cpu:0",))
    assert any("not bit-identical" in line for line in result.lines())
    assert "Devices: CPU 0 alone; it was DDP on CPU 0, CPU 1." in result.lines()


def test_independent_copies_become_one_and_it_is_said_which(runs: Path) -> None:
    store = make_run(runs, mode="independent")
    more = plan(store.dir, runs, devices="cpu:3")
    assert (more.mode_now, more.copies) == (
        "independent",
        "1 more device starts from the copy of CPU 0 (100 samples seen)",
    )
    one = plan(store.dir, runs, mode="ddp")
    assert one.mode_now == "ddp"
    assert (
        "Weights: the copy of CPU 0 (100 samples seen); what CPU 1 learned alone is "
        "missing from these weights, though its samples count as trained." in one.lines()
    )
    assert plan(store.dir, runs, mode="single", devices="cpu:1").copies == one.copies
    both = plan(store.dir, runs, mode="ddp", merge_policy="average")
    assert "Weights: the average of the copies of CPU 0 and CPU 1." in both.lines()
    assert plan(store.dir, runs).copies == ""


def test_settings_of_how_it_goes_on_are_named_with_what_they_were(runs: Path) -> None:
    store = make_run(runs)
    result = plan(store.dir, runs, mode="independent", sync_every="10", precision="bf16", merge_policy="average")
    assert (result.mode_now, result.config.sync_every, result.config.precision) == ("independent", 10, "bf16")
    text = "\n".join(result.lines())
    assert "Sync interval: 10 steps; it was not set." in text
    assert "Precision: bf16; it was auto. The weights stay the same" in text
    assert "Merge: average; it was best." in text
    assert "Devices: parallel-independent on CPU 0, CPU 1; it was DDP on CPU 0, CPU 1." in text
    assert (
        "Samples per step: 8 = 8 × 1 × 1 (micro-batch × devices in step × accumulation); it was 16 = 8 × 2 × 1" in text
    )
    same = plan(store.dir, runs)
    assert same.changed == ()


def test_batch_numbers_that_no_longer_fit_keep_the_global_batch(runs: Path) -> None:
    store = make_run(runs, batch_size=8, grad_accum_steps=1, global_batch_size=16)
    one = plan(store.dir, runs, mode="single", devices="cpu:1").config
    assert (one.batch_size, one.grad_accum_steps, one.global_batch_size) == (8, None, 16)
    with pytest.raises(ConfigError, match="not a multiple of 3") as caught:
        plan(store.dir, runs, devices="cpu:3")
    assert "15 or 18" in caught.value.next_step
    assert plan(store.dir, runs, devices="cpu:3", global_batch_size="15", batch_size="5").config.global_batch_size == 15


def test_a_mode_that_the_recipe_cannot_be_trained_in(runs: Path) -> None:
    recipe = runs / "only_alone"
    recipe.mkdir()
    text = 'format = "rankdeck-recipe"\nversion = 1\nname = "only_alone"\ntitle = "Alone"\nmodes = ["single"]\n'
    (recipe / "recipe.toml").write_text(text, encoding="utf-8")
    (recipe / "train.py").write_text("def main(run): ...\n", encoding="utf-8")
    store = make_run(runs, "stopped", checkpoints=0, recipe=str(recipe), mode="auto", options={})
    with pytest.raises(ConfigError, match="Alone does not support DDP"):
        plan(store.dir, runs)


def test_a_dataset_that_moved_is_the_same(runs: Path) -> None:
    store = make_run(runs)
    (runs / "text.txt").rename(runs / "moved.txt")
    with pytest.raises(DatasetError) as caught:
        plan(store.dir, runs)
    assert caught.value.next_step == "If it has moved, choose the data: --dataset-file PATH"
    assert caught.value.window_step == "If it has moved, choose the data."
    moved = plan(store.dir, runs, dataset_file=str(runs / "moved.txt"))
    assert moved.config.dataset_file == str(runs / "moved.txt")


def test_another_chunk_size_is_refused_with_both_named(runs: Path) -> None:
    store = make_run(runs)
    with pytest.raises(StateFileError) as caught:
        plan(store.dir, runs, dataset_chunk_size="60")
    assert "50" in caught.value.cause and "60" in caught.value.cause
    toml = store.run_toml.read_text(encoding="utf-8")
    store.run_toml.write_text(
        toml.replace("dataset_chunk_size = 50", "dataset_chunk_size = 70"), encoding="utf-8", newline="\n"
    )
    with pytest.raises(StateFileError) as caught:
        plan(store.dir, runs)
    assert "50" in caught.value.cause and "70" in caught.value.cause


def test_settings_of_an_earlier_version_are_named_in_one_note(runs: Path) -> None:
    store = make_run(runs)
    assert not any("earlier version" in line for line in plan(store.dir, runs).warnings)
    toml = store.run_toml.read_text(encoding="utf-8")
    store.run_toml.write_text(f"work_stealing = true\nmax_kwh = 2.0\n{toml}", encoding="utf-8", newline="\n")
    (note,) = [line for line in plan(store.dir, runs).warnings if "earlier version" in line]
    assert note == "Settings of an earlier version, without effect in this one: work_stealing, max_kwh."


def test_another_recipe_is_refused(runs: Path) -> None:
    with pytest.raises(ConfigError, match="minigpt"):
        plan(make_run(runs).dir, runs, recipe="other")


def test_a_damaged_state_file_is_refused(runs: Path) -> None:
    store = make_run(runs)
    store.ledger.write_bytes(store.ledger.read_bytes()[:100])
    with pytest.raises(StateFileError, match="cut off"):
        plan(store.dir, runs)


def test_nothing_by_that_name(runs: Path) -> None:
    for text in ("nothing", str(runs / "chunk_tracker_state.json"), str(runs)):
        with pytest.raises(RunNotFoundError):
            plan(text, runs)


def test_our_state_file_without_its_run(runs: Path) -> None:
    store = make_run(runs)
    lost = runs / "elsewhere" / "a" / "chunk_tracker_state.json"
    lost.parent.mkdir(parents=True)
    lost.write_bytes(store.ledger.read_bytes())
    with pytest.raises(StateFileError, match="not in its run's folder"):
        plan(lost, runs)


# --- AI-OS's state file


@pytest.mark.parametrize("by_folder", [True, False])
def test_aios_file_starts_a_new_run_on_what_is_left(runs: Path, by_folder: bool) -> None:
    path = aios_file(runs / "brain" / "datasets" / f"text_cs{CHUNK}")
    result = plan(path.parent if by_folder else path, runs, dataset_file=str(runs / "text.txt"), devices="cpu:2")
    assert result.run_dir is None and result.state_file is not None
    assert (result.config.dataset_chunk_size, result.config.epochs, result.config.steps) == (CHUNK, 1, None)
    assert result.progress is not None and result.progress.chunks_done == 3
    text = " ".join(result.lines())
    assert str(path) in text and "3 of 3 chunks" not in text and "fresh" in text


def test_aios_file_in_bf16_is_refused_on_a_gpu_without_it(runs: Path) -> None:
    path = aios_file(runs / f"text_cs{CHUNK}")
    old = Device("GPU-2080", "cuda", 0, "GeForce RTX 2080", 8 << 30, compute_capability=(7, 5))
    given = {"dataset_file": str(runs / "text.txt"), "devices": "cuda:0", "precision": "bf16"}
    with pytest.raises(ConfigError, match="GeForce RTX 2080 has no bf16"):
        plan_resume(str(path), runs, given, available=[old], platform=replace(LINUX, cuda_build="13.0"))


def test_aios_file_says_what_is_odd_about_it(runs: Path) -> None:
    chunk = {"block_id": 0, "chunk_id": 0, "gpu_id": 0, "optimizer_step": 0, "steps": CHUNK}
    path = aios_file(runs / f"text_cs{CHUNK}", completed_chunks=[chunk, chunk], version=9)
    lines = plan(path, runs, dataset_file=str(runs / "text.txt")).lines()
    assert any("ignores: 'version'" in line for line in lines) and any("each counts once" in line for line in lines)


def test_aios_file_needs_its_dataset_named(runs: Path) -> None:
    with pytest.raises(DatasetError, match="'text'") as caught:
        plan(aios_file(runs / f"text_cs{CHUNK}"), runs)
    assert "--dataset-file" in caught.value.next_step


def test_aios_file_outside_its_folder_takes_the_size_that_is_given(runs: Path) -> None:
    path = aios_file(runs / "loose")
    result = plan(path, runs, dataset_file=str(runs / "text.txt"), dataset_chunk_size="50")
    assert result.config.dataset_chunk_size == 50
    assert any("does not say the chunk size" in line for line in result.lines())


def test_aios_file_with_everything_done(runs: Path) -> None:
    path = aios_file(runs / f"text_cs{CHUNK}", chunks=12, blocks_this_epoch=[0], completed_blocks=[0])
    with pytest.raises(RankdeckError, match="Every chunk"):
        plan(path, runs, dataset_file=str(runs / "text.txt"))
    assert plan(path, runs, dataset_file=str(runs / "text.txt"), epochs="2").config.epochs == 2


def test_going_back_to_a_checkpoint_sets_newer_ones_aside_and_takes_its_ledger(runs: Path) -> None:
    store = make_run(runs, checkpoints=3)
    result = plan(store.dir, runs, checkpoint="1")
    assert (result.checkpoint, result.step, result.set_aside) == (1, 10, (2, 3))
    assert result.progress is not None and result.progress.chunks_done == 1
    assert any(
        "their folders are renamed to 2.aside and 3.aside" in line and "choose checkpoint 3" in line
        for line in result.lines()
    )
    assert [item.text for item in result.checkpoints] == ["1 (step 10)", "2 (step 20)", "3 (step 30)"]
    assert (store.checkpoints / "3").is_dir(), "a plan changes nothing"
    CheckpointStore(store.checkpoints).go_back(1)
    again = plan(store.dir, runs)
    assert (again.checkpoint, again.damaged) == (1, ()), "also the next resume continues from there"
    back = plan(store.dir, runs, checkpoint="3")
    assert (back.checkpoint, back.step, back.set_aside) == (3, 30, ())


@pytest.mark.parametrize("named", ["7", "x", "-1", "9" * 40])
def test_a_checkpoint_that_is_not_there_is_refused_with_those_that_are(runs: Path, named: str) -> None:
    store = make_run(runs)
    with pytest.raises(UsageError, match="no checkpoint") as caught:
        plan(store.dir, runs, checkpoint=named)
    assert "1 (step 10), 2 (step 20)" in caught.value.next_step


def test_a_damaged_checkpoint_that_was_asked_for_is_refused(runs: Path) -> None:
    store = make_run(runs)
    (store.checkpoints / "1" / "weights0.safetensors").write_bytes(b"x" * 100)
    with pytest.raises(StateFileError, match="SHA-256") as caught:
        plan(store.dir, runs, checkpoint="1")
    assert "Choose another checkpoint" in caught.value.next_step
