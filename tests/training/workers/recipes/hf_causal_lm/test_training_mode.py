"""A pretrained model trains in training mode: on all ranks, from the first step on, through samples and kills."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="trains for real")

import numpy as np
import torch

from core.config import RunConfig
from core.config.batch import Batch
from tests.helpers.deepspeed_here import needs_deepspeed
from tests.helpers.hosted_run import curve, host, lines, make_run, write_text
from tests.training.rank_program import CPU
from tests.training.workers.recipes.hf_causal_lm.made import make_folder, needs_peft, needs_transformers, typed_options
from workers.measure.run import MeasuredRun, NoHost
from workers.recipes.hf_causal_lm.model import checkpointed, trained_model, with_lora
from workers.strategies import RankPlace, SingleStrategy
from workers.training.session import Session
from workers.training.setup import set_up
from workers.training.task import Task

LAYERS = 2


@needs_transformers
@needs_peft
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft 0.21 asks by the older name
@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
@pytest.mark.parametrize("training", ["full", "lora"])
@pytest.mark.parametrize("by", ["run", "measurement"])
def test_each_layer_of_a_pretrained_model_is_recomputed(
    architecture: str, training: Any, by: str, tmp_path: Path
) -> None:
    """By what a run trains, and by what estimates and trials measure."""
    model: Any = trained_model(make_folder(tmp_path / "model", architecture))
    layers = model.transformer.h if architecture == "gpt2" else model.model.layers
    checkpointed(model)
    if training == "lora":
        model = with_lora(model, typed_options(training="lora", lora_rank=2), "model")
    task = Task(model, batch=lambda indices: torch.from_numpy(indices), loss=lambda model, _: model.mean())
    no_host: Any = NoHost()
    strategy = SingleStrategy(RankPlace(0, 1, CPU))
    session = Session(RunConfig(), tmp_path, strategy, Batch.of(1, 1, 1), no_host, no_host)
    if by == "run":
        set_up(session, task)
    else:
        MeasuredRun(session, lambda _: None).fit(task)

    passes = [0] * LAYERS
    for number, layer in enumerate(layers):
        layer.mlp.register_forward_pre_hook(lambda *_, number=number: passes.__setitem__(number, passes[number] + 1))
    ids = torch.from_numpy(np.arange(1, 9)[None])
    model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
    assert passes == [2] * LAYERS, "each layer once forwards, once again on the way back"


MODES: Mapping[str, Mapping[str, Any]] = {
    "ddp": {"mode": "ddp"},
    "independent": {"mode": "independent"},
    "zero2": {"mode": "zero", "zero_stage": 2, "zero_engine": "torch"},
    "deepspeed1": {"mode": "zero", "zero_stage": 1, "zero_engine": "deepspeed"},
    "deepspeed3": {"mode": "zero", "zero_stage": 3, "zero_engine": "deepspeed"},
}


@needs_transformers
@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "mode", [pytest.param(it, marks=[needs_deepspeed] * it.startswith("deepspeed")) for it in MODES]
)
def test_dropout_acts_on_all_ranks_from_the_first_step_and_survives_a_kill(mode: str, tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt", 20_000)
    folders = {rate: make_folder(tmp_path / f"model {rate}", "gpt2", dropout=rate) for rate in (0.0, 0.4)}

    def run(name: str, rate: float = 0.4, sample_tokens: int = 4) -> Any:
        options = {"sample_tokens": sample_tokens, "warmup_steps": 2, "documents": "joined"}
        return make_run(
            tmp_path / name, text, world=2, recipe="hf_causal_lm", model=str(folders[rate]), options=options,
            steps=8, eval_every=3, checkpoint_every_steps=4, lr=1e-3, **MODES[mode],
        )  # fmt: skip

    whole, killed, silent, plain = run("whole"), run("killed"), run("silent", sample_tokens=0), run("plain", 0.0)
    assert host(whole) == host(silent) == host(plain) == 0
    first, undropped = (
        {line["rank"]: line["loss"] for line in lines(store, "step") if line["step"] == 1} for store in (whole, plain)
    )
    assert all(first[rank] != undropped[rank] for rank in (0, 1)), "dropout acts in the first step"
    assert len(lines(whole, "sample")) == 3 and not lines(silent, "sample")
    assert curve(silent) == curve(whole), "a sampled text changes no loss after it"
    assert host(killed, "mid_chunk@6") != 0
    assert host(killed) == 0
    assert curve(killed) == curve(whole)
    assert killed.model.read_bytes() == whole.model.read_bytes()
