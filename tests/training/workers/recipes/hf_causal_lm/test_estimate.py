"""Memory estimate of a model that is opened with its weights: sizes from the meta device, passes of the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.config import RunConfig
from core.config.mode import Mode
from core.launch.resolved import resolve_on
from core.machine.devices.device import Device
from core.machine.platform import this_platform
from core.measure.estimate.probe import find_figures
from core.recipes.catalog import get_recipe
from tests.training.workers.recipes.hf_causal_lm.made import make_folder, needs_peft, needs_transformers, options

pytestmark = [needs_transformers, needs_peft, pytest.mark.slow, pytest.mark.timeout(300)]


def test_an_adapter_on_a_model_with_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path / "home"))
    (tmp_path / "text.txt").write_text("the cat sat on the mat. " * 2000, encoding="utf-8")
    folder = make_folder(tmp_path / "model", n_layer=2, n_embd=64)
    config = RunConfig(
        recipe="hf_causal_lm",
        model=str(folder),
        dataset_file=str(tmp_path / "text.txt"),
        seq_len=32,
        batch_size=2,
        steps=2,
        mode=Mode.SINGLE,
        options=options(training="lora", sample_tokens=0),
    )
    run = resolve_on(config, get_recipe("hf_causal_lm"), [Device("cpu:0", "cpu", 0, "CPU 0")], this_platform())
    found = find_figures(run, limit_s=240)
    assert found.is_measured and found.note == ""
    assert 0 < found.trainable < found.parameters / 2
    assert found.parameter_bytes == 4 * found.parameters
    assert found.pass_peak_bytes > 0
