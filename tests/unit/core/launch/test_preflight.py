"""What is refused before a run's folder is made, and with which exit code."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from core.config.run_config import RunConfig
from core.errors import PreflightError, RankdeckError
from core.launch.preflight import MIN_FREE_BYTES, Checked, check, check_folder, needed_bytes
from core.launch.resolved import resolve
from core.machine.devices import Device
from core.machine.platform import Platform
from core.recipes.catalog import get_recipe
from core.recipes.manifest import recipe_defaults

pytestmark = pytest.mark.usefixtures("checked_here")

LINUX = Platform("linux", "2.13.0+cpu", None, 4)
WINDOWS = Platform("windows", "2.13.0+cu128", "12.8", 8)
SLOTS = [Device(f"cpu:{n}", "cpu", n, "Processor") for n in range(4)]
OLD = Device("GPU-old", "cuda", 2, "GeForce RTX 2080 Ti", 11 << 30, (7, 5))
GPUS = [Device(f"GPU-{n}", "cuda", n, "RTX", 48 << 30) for n in range(2)]


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Named shortly: named after its test it leaves a run no room on Windows, which is a note of its own."""
    return tmp_path_factory.mktemp("t")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(b"some text to learn\n" * 1000)
    return path


def _check(tmp_path: Path, text: Path, platform: Platform = LINUX, **changes: Any) -> Checked:
    recipe = get_recipe("minigpt")
    run_dir = changes.pop("run_dir", None)
    base = {"dataset_file": str(text), "devices": ("cpux2",), "seq_len": 32}
    config = RunConfig(**recipe_defaults(recipe)).replace(**{**base, **changes})
    run = resolve(config, recipe, GPUS if platform is WINDOWS else SLOTS, platform)
    return check(run, tmp_path / "runs", run_dir)


def test_a_run_that_can_start_is_described(tmp_path: Path, text: Path) -> None:
    checked = _check(tmp_path, text, batch_size=4)
    assert (checked.run.mode, len(checked.run.devices), str(checked.run.batch)) == ("ddp", 2, "8 = 4 × 2 × 1")
    assert checked.dataset.size_bytes == 19_000
    assert checked.steps_per_epoch == -(-checked.samples // 8)
    assert not (tmp_path / "runs").exists()


def test_a_model_that_a_recipe_does_not_use_is_named_before_the_start(tmp_path: Path, text: Path) -> None:
    assert not _check(tmp_path, text, mode="ddp").notes
    (note,) = _check(tmp_path, text, mode="ddp", model="gpt2").notes
    assert note == "MiniGPT does not use a model, so 'gpt2' has no effect."
    assert _check(tmp_path, text, mode="ddp", model="gpt2", strict=True).notes == (note,)
    mine = dataclasses.replace(get_recipe("minigpt"), folder=tmp_path / "mine", check="", title="Mine")
    config = RunConfig(**recipe_defaults(mine)).replace(dataset_file=str(text), seq_len=32, model="m")
    *_, note = check(resolve(config, mine, SLOTS, LINUX), tmp_path / "runs").notes
    assert note.startswith("Mine does not use a model") and "uses_model = true" in note


def test_a_zero_run_says_before_the_start_which_engine_it_takes(tmp_path: Path, text: Path) -> None:
    note = "ZeRO stage 2 by PyTorch's own engine: DeepSpeed is not installed."
    assert _check(tmp_path, text, mode="zero", zero_stage=2).notes == (note,)
    deepspeed = dataclasses.replace(LINUX, deepspeed_version="0.19.8")
    notes = _check(tmp_path, text, deepspeed, mode="zero", zero_stage=2).notes
    assert notes == ("ZeRO stage 2 by DeepSpeed 0.19.8 (installed).",)


def test_how_the_mode_was_understood_is_told_before_the_start(tmp_path: Path, text: Path) -> None:
    assert _check(tmp_path, text).notes == ("No mode was chosen: several devices train together (DDP).",)
    notes = _check(tmp_path, text, mode="fsdp", offload_optimizer=True).notes
    assert notes == ("PyTorch's engine keeps each device's share of the weights on the CPU too, beside the optimizer.",)
    synchronised = _check(tmp_path, text, mode="independent", sync_every=4).notes
    assert any(note.startswith("The devices' weights are synchronised") for note in synchronised)


def test_a_recipe_that_makes_its_samples_calls_a_block_an_epoch(tmp_path: Path, text: Path) -> None:
    for dataset in ("none://", str(text)):
        recipe = dataclasses.replace(get_recipe("minigpt"), own_samples=True)
        values = {
            **recipe_defaults(recipe),
            "dataset_file": dataset,
            "samples_per_block": 640,
            "devices": ("cpux2",),
            "mode": "ddp",
        }
        checked = check(resolve(RunConfig(**values).replace(batch_size=8), recipe, SLOTS, LINUX), tmp_path / "runs")
        assert (checked.samples, checked.steps_per_epoch, checked.notes) == (640, 40, ())


def test_notes_say_what_stops_nothing(tmp_path: Path, text: Path) -> None:
    text.write_bytes(b"\xff" * 19_000)
    notes = _check(tmp_path, text, mode="independent", merge_policy="average", dataset_chunk_size=4000).notes
    assert [any(word in note for note in notes) for word in ("UTF-8", "1 chunks", "Averaging")] == [True] * 3
    assert any("many times slower" in note for note in _check(tmp_path, text, precision="fp16").notes)


def test_what_was_asked_of_the_mode_and_comes_to_something_else_is_said(tmp_path: Path, text: Path) -> None:
    alone = _check(tmp_path, text, devices=("cpu:0",), mode="ddp", sync_every=10)
    assert alone.run.mode == "single"
    assert "mode ddp is the same as training on it alone" in alone.notes[0] and "nothing to synch" in alone.notes[1]
    assert "in step at all times" in _check(tmp_path, text, mode="ddp", sync_every=10).notes[0]
    assert _check(tmp_path, text, devices=("cpu:0",)).notes == ()


class Case(NamedTuple):
    """One refusal: what is asked, the exit code, words that must be in it."""

    changes: dict[str, Any]
    code: int
    words: str
    platform: Platform = LINUX


REFUSALS = [
    Case({"devices": ("cuda:7",)}, 2, "cuda:7"),
    Case({"precision": "bf16", "devices": ("GPU-old",)}, 2, "RTX 2080 Ti has no bf16", WINDOWS),
    Case({"seq_len": 10_000}, 2, "20,002"),
    Case({"dataset_file": "hf://a b"}, 2, "does not name"),
    Case({"options": {"n_layers": 2}}, 2, "n_layers"),
    Case({}, 3, "not installed", Platform("linux", None, None, 4)),
    Case({}, 3, "older than 2.7", Platform("linux", "2.3.1", None, 4)),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.words)
def test_what_cannot_run_is_refused_and_nothing_is_made(tmp_path: Path, text: Path, case: Case) -> None:
    before = sorted(tmp_path.rglob("*"))
    recipe = get_recipe("minigpt")
    values = {"dataset_file": str(text), "devices": ("cpux2",), "seq_len": 32, **case.changes}
    config = RunConfig(**{**recipe_defaults(recipe), **values})
    with pytest.raises(RankdeckError) as caught:
        check(resolve(config, recipe, [*GPUS, OLD, *SLOTS], case.platform), tmp_path / "runs")
    assert (caught.value.exit_code, case.words in caught.value.cause) == (case.code, True), str(caught.value)
    assert caught.value.next_step
    assert sorted(tmp_path.rglob("*")) == before


def test_a_run_folder_that_is_a_file_or_taken(tmp_path: Path, text: Path) -> None:
    with pytest.raises(RankdeckError, match="is a file") as caught:
        _check(tmp_path, text, run_dir=text)
    assert caught.value.exit_code == 2
    taken = tmp_path / "taken"
    taken.mkdir()
    assert _check(tmp_path, text, run_dir=taken).run.mode == "ddp"
    (taken / "run.toml").touch()
    with pytest.raises(RankdeckError, match="already contains a run") as caught:
        _check(tmp_path, text, run_dir=taken)
    assert "resume" in caught.value.next_step


def test_a_folder_under_a_file_cannot_be_made(text: Path) -> None:
    with pytest.raises(RankdeckError) as caught:
        check_folder(text / "runs")
    assert caught.value.exit_code == 2


def test_a_nearly_full_disk_is_named_with_both_figures(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free
    with pytest.raises(RankdeckError) as caught:
        check_folder(tmp_path / "new" / "runs", needed_bytes=free + (1 << 40))
    assert caught.value.exit_code == 3
    assert caught.value.title == "The disk is too full"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's: a folder in which even root can write nothing")
def test_a_folder_that_cannot_be_written() -> None:
    with pytest.raises(RankdeckError) as caught:
        check_folder(Path("/proc/rankdeck-runs"), needed_bytes=0)
    assert caught.value.exit_code == 3


def test_a_log_file_that_cannot_be_one(tmp_path: Path, text: Path) -> None:
    assert _check(tmp_path, text, log_file=str(tmp_path / "new" / "m.jsonl")).run.mode == "ddp"
    with pytest.raises(RankdeckError, match="is a folder"):
        _check(tmp_path, text, log_file=str(tmp_path))


def test_the_reserve_is_part_of_what_must_be_free(tmp_path: Path, text: Path) -> None:
    free_gib = shutil.disk_usage(tmp_path).free / 2**30
    with pytest.raises(PreflightError, match="this run needs at least"):
        _check(tmp_path, text, disk_reserve=free_gib + 1000)


def test_room_is_asked_for_by_the_size_of_a_checkpoint() -> None:
    config = RunConfig(disk_reserve=1.0)
    assert needed_bytes(config, None) == 2**30 + MIN_FREE_BYTES
    assert needed_bytes(config, 5 * 2**30) == 16 * 2**30
