"""A whole run: stopped and resumed, sampled, exported, and opened with transformers alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="trains for real")

import numpy as np
import torch

from core.export.export import export_run
from core.run_folder.store import RunStore
from tests.helpers.hosted_run import curve, host, lines, make_run
from tests.helpers.written import write_rows
from tests.training.workers.recipes.hf_causal_lm.made import make_folder, needs_peft, needs_transformers
from workers.recipes.hf_causal_lm.samples import Packing, loss

pytestmark = [pytest.mark.windows, pytest.mark.slow, pytest.mark.timeout(240), needs_transformers]

STEPS = 40
SMALL = {
    "n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 300, "sample_tokens": 4, "warmup_steps": 2,
    "val_fraction": 0.01,
}  # fmt: skip


def new_run(folder: Path, rows: Path) -> RunStore:
    settings = {"steps": STEPS, "eval_every": 20, "lr": 5e-3, "model": "llama", "val_samples": 1000}
    return make_run(folder, rows, "ddp", 2, recipe="hf_causal_lm", options=SMALL, **settings)


def val_loss(folder: Path, store: RunStore) -> float:
    """The validation loss of an exported folder, worked out without a run."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    found = json.loads((store.data / "data.json").read_text(encoding="utf-8"))
    cache = Path(found["info"]["token_cache"])
    tokens, ends = np.fromfile(cache / "tokens.bin", "<u2"), np.fromfile(cache / "ends.bin", "<u8")
    assert tokenizer.decode(tokens[: int(ends[0])]) == "document 0: the größe of 0 is not 0.<|endoftext|>"
    batch = Packing(tokens, 16, ends).batch(np.arange(found["val_samples"]), found["info"]["train_tokens"])
    with torch.no_grad():
        return float(loss(model, batch))


def test_stopped_and_resumed_it_goes_on_as_if_nothing_had_been_and_its_export_is_that_model(tmp_path: Path) -> None:
    texts = [f"document {number}: the größe of {number * number % 997} is not {number % 7}." for number in range(400)]
    rows = write_rows(tmp_path / "rows.jsonl", texts)
    whole, stopped = new_run(tmp_path / "whole", rows), new_run(tmp_path / "stopped", rows)
    assert host(whole, timeout_s=200.0) == 0
    assert host(stopped, stop_at=3, timeout_s=200.0) == 0
    assert 3 <= stopped.state().step < STEPS
    assert host(stopped, timeout_s=200.0) == 0
    losses = curve(whole)
    assert list(losses) == list(range(1, STEPS + 1)) and losses[STEPS] < losses[1] - 0.5
    assert curve(stopped) == losses
    assert stopped.model.read_bytes() == whole.model.read_bytes()
    samples = lines(whole, "sample")
    assert [sample["step"] for sample in samples] == [20, 40] and all(sample["prompt"] for sample in samples)

    folder = export_run(whole, "hf").path
    assert val_loss(folder, whole) == pytest.approx(lines(whole, "eval")[-1]["val_loss"], rel=1e-5)


@needs_peft
@pytest.mark.parametrize("training", ["full", "lora"])
def test_its_model_may_move_between_start_and_resume(training: str, tmp_path: Path) -> None:
    model = make_folder(tmp_path / "base")
    rows = write_rows(tmp_path / "rows.jsonl", [f"the cat sat on mat {number}." for number in range(200)])
    chosen = {"training": training, "sample_tokens": 2, "lora_rank": 2}
    settings = {"recipe": "hf_causal_lm", "model": str(model), "options": chosen, "eval_every": 6}
    kept, moved = (make_run(tmp_path / name, rows, "single", 1, steps=6, **settings) for name in ("kept", "moved"))
    assert host(kept, timeout_s=200.0) == 0
    assert host(moved, stop_at=3, timeout_s=200.0) == 0
    model.rename(tmp_path / "renamed")
    shutil.rmtree(moved.data.parent.parent / "cache", ignore_errors=True)
    (moved.data / "data.json").unlink()  # its data is prepared again
    assert host(moved, timeout_s=200.0) == 0
    assert moved.model.read_bytes() == kept.model.read_bytes()
    assert (export_run(moved, "hf").path / "tokenizer.json").is_file()
