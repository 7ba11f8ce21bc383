"""The probe, on real recipes: its lines hold for larger micro-batches, and it survives its own end."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from core.cli.entry import main
from core.config import RunConfig
from core.config.mode import Mode
from core.errors import DatasetError, RankdeckError
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices.device import Device
from core.machine.platform import this_platform
from core.measure.estimate.figures import ModelFigures
from core.measure.estimate.free import Free
from core.measure.estimate.history import history
from core.measure.estimate.modes import estimate_modes, estimate_run
from core.measure.estimate.probe import (
    EstimateError,
    find_baselines,
    find_figures,
    keep,
    known_baselines,
    known_figures,
)
from core.measure.estimate.shape import link_name
from core.measure.estimate.steps import find_time
from core.measure.link import Link
from core.measure.ranks import CancelledError
from core.recipes.catalog import get_recipe
from core.recipes.parameter_formula import ParameterCount

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
DEVICES = [Device(f"cpu:{number}", "cpu", number, f"CPU {number}") for number in range(2)]
SMALL = {"n_layer": 2, "n_embd": 64, "sample_tokens": 0}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path / "home"))
    (tmp_path / "text.txt").write_text("the cat sat on the mat. " * 2000, encoding="utf-8")


def made(folder: Path, ranks: int = 2, **changes: object) -> ResolvedRun:
    config = RunConfig(dataset_file=str(folder / "text.txt"), seq_len=32, batch_size=4, steps=2, options=SMALL)
    config = config.replace(mode=Mode.DDP if ranks > 1 else Mode.SINGLE, **changes)
    return resolve_on(config, get_recipe("minigpt"), DEVICES[:ranks], this_platform())


def test_a_recipes_figures_are_found_once_and_kept(tmp_path: Path) -> None:
    run = made(tmp_path, batch_size=1, seq_len=256)
    assert known_figures(run) is None
    counts: list[ParameterCount] = []
    found = find_figures(run, counted=counts.append)
    assert found.is_measured
    assert found.parameter_bytes == 4 * found.parameters == found.trainable_bytes == sum(found.tensor_bytes)
    assert found.optimizer_ratio == 2.0
    # The process had its peak in the passes of three samples, not in whole steps of one.
    assert found.pass_peak_bytes == found.trainable_bytes + found.pass_bytes(3, adds=True)
    assert 0 < found.block_bytes <= found.blocks_bytes < found.parameter_bytes
    assert known_figures(run) == found
    assert known_figures(made(tmp_path, lr=1e-4, batch_size=8, seq_len=256)) == found  # they do not depend on these
    assert known_figures(made(tmp_path, seq_len=64)) is None
    assert counts == [ParameterCount(found.parameters, found.trainable)]
    bare = find_baselines(run)
    assert bare.of("single") > 50 << 20
    modes = estimate_modes(run, found, bare, Free(ram=1 << 40, commit=1 << 40))
    assert {mode.verdict for mode in modes if not mode.reason} == {"fits"}
    assert estimate_run(run, found, bare, Free()).largest > bare.of("ddp")


def test_a_deepspeed_without_its_files_costs_no_other_mode_its_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torn" / "deepspeed").mkdir(parents=True)
    (tmp_path / "torn" / "deepspeed" / "__init__.py").write_text("", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "torn"))
    run = made(tmp_path)
    run = replace(run, platform=replace(run.platform, deepspeed_version="0.16.5"))
    bare = find_baselines(run)
    assert set(bare.rss_bytes) == {"single", "ddp", "zero1", "fsdp"}
    assert known_baselines(run.platform) is None, "it may be repaired tomorrow"


def test_a_probe_says_the_parameter_count_first(tmp_path: Path) -> None:
    run = made(tmp_path)
    counts: list[ParameterCount] = []
    with pytest.raises(CancelledError):
        find_figures(run, cancelled=lambda: bool(counts), counted=counts.append)
    assert len(counts) == 1 and counts[0].total == counts[0].trained > 0
    assert known_figures(run) is None


def test_no_step_is_timed_that_would_take_too_much_memory(tmp_path: Path) -> None:
    run = made(tmp_path, batch_size=1 << 19)
    big = ModelFigures(1, 1, 4, 0, 4, (4,), 2.0, step_lines=((0, 1 << 30),), added_lines=((0, 1 << 30),))
    link = Link(1.0, 0.0, 2, "gloo")
    keep(link_name(run), asdict(link))
    found = find_time(run, big)
    assert found.steps == {} and found.note.startswith("Steps would take too much memory")
    assert found.link == link


def test_a_probe_that_takes_too_long_is_a_sentence_or_an_error(tmp_path: Path) -> None:
    run = made(tmp_path)
    with pytest.raises(EstimateError):
        find_figures(run, limit_s=0.1)
    with pytest.raises(CancelledError):
        find_figures(run, cancelled=lambda: True)
    assert known_figures(run) is None


def test_a_probe_that_is_ended_after_the_sizes_still_gives_them(tmp_path: Path) -> None:
    folder = tmp_path / "minigpt"
    folder.mkdir()
    source = get_recipe("minigpt").folder
    for name in ("recipe.toml", "options.py", "tokenizer.py", "check.py"):
        (folder / name).write_bytes((source / name).read_bytes())
    text = (source / "train.py").read_text(encoding="utf-8")
    forward = "        logits = model(window[:, :-1])\n"
    ending = (
        f"        if not next(model.parameters()).is_meta:\n            import os\n            os._exit(3)\n{forward}"
    )
    (folder / "train.py").write_text(text.replace(forward, ending), encoding="utf-8")
    run = made(tmp_path)
    run = resolve_on(run.config.replace(recipe=str(folder)), get_recipe(str(folder)), DEVICES, run.platform)
    found = find_figures(run)
    assert not found.is_measured
    assert found.parameters > 0
    assert found.note.startswith("The activations are unknown, because the probe ended early")
    assert known_figures(run) is None  # the next one may have more time


def test_what_the_recipe_refuses_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("too short", encoding="utf-8")
    run = made(tmp_path, seq_len=4096, dataset_file=str(tmp_path / "none.txt"))
    with pytest.raises(RankdeckError) as refusal:
        find_figures(run)
    assert isinstance(refusal.value, EstimateError | DatasetError)
    assert "none.txt" in refusal.value.cause


def test_a_run_remembers_what_was_predicted_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--dataset-file", str(tmp_path / "text.txt"), "--seq-len", "32", "--batch-size", "4", "--steps", "2"]
    flags += ["--set", "n_layer=2", "--set", "n_embd=64", "--set", "sample_tokens=0"]
    flags += ["--devices", "cpux2", "--mode", "ddp"]
    assert main(["estimate", *flags, "--json"]) == 0
    assert '"predicted_bytes"' in capsys.readouterr().out
    assert main(["estimate", *flags]) == 0
    assert "ddp: Fits." in capsys.readouterr().out
    runs = tmp_path / "runs"
    assert main(["train", *flags, "--runs-dir", str(runs)]) == 0
    (row,) = history(runs)
    assert (row["mode"], row["ranks"], row["recipe"]) == ("ddp", 2, "minigpt")
    assert row["error"] is not None
    assert abs(row["error"]) < 0.25  # of a rank that is nearly bare
    capsys.readouterr()
    assert main(["estimate", "--history", "--runs-dir", str(runs)]) == 0
    assert row["run"] in capsys.readouterr().out
