"""DeepSpeed's configuration, checked before a rank starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.config.batch import Batch
from core.config.layers import normalise, with_absolute_paths
from core.errors import ConfigError
from core.launch.deepspeed import check_run, check_text, effective_config, own_text
from core.launch.deepspeed import without_open_values as final

BATCH = Batch(4, 2, 3, 24)


def config(stage: int = 2, text: str | None = None, **settings: Any) -> RunConfig:
    return RunConfig(mode="zero", zero_stage=stage, deepspeed_config=text, **settings)


@pytest.mark.parametrize("stage", (1, 2, 3))
def test_rankdecks_own_leave_to_the_run_what_the_run_decides(stage: int) -> None:
    assert check_text(own_text(stage), stage) is None
    shown = effective_config(config(stage))
    assert shown["gradient_clipping"] == shown["bf16"]["enabled"] == shown["train_batch_size"] == "auto"

    settings = final(effective_config(config(stage), BATCH, precision="bf16", clip_norm=0.0))
    assert settings["gradient_clipping"] == 0.0, "DeepSpeed's own default clips"
    assert settings["train_batch_size"] == 24
    assert (settings["train_micro_batch_size_per_gpu"], settings["gradient_accumulation_steps"]) == (4, 3)
    assert settings["bf16"]["enabled"] is True and settings["fp16"]["enabled"] is False
    assert settings["zero_optimization"]["stage"] == stage
    assert "offload_optimizer" not in settings["zero_optimization"]
    assert "auto" not in json.dumps(settings)


def test_offload_is_put_where_deepspeed_looks_for_it() -> None:
    both = config(3, offload_optimizer=True, offload_parameters=True)
    zero = final(effective_config(both, BATCH, precision="fp32", clip_norm=1.0))["zero_optimization"]
    assert zero["offload_optimizer"]["device"] == zero["offload_param"]["device"] == "cpu"


def test_a_persons_own_is_used_and_completed() -> None:
    text = '{"zero_optimization": {"stage": 3, "stage3_max_live_parameters": 5e6}, "gradient_clipping": 0.5}'
    settings = final(effective_config(config(3, text), BATCH, precision="fp32", clip_norm=0.5))
    assert settings["zero_optimization"] == {"stage": 3, "stage3_max_live_parameters": 5e6}
    assert settings["train_batch_size"] == 24
    assert settings["zero_force_ds_cpu_optimizer"] is False


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"zero_optimization": {"stage": 3}}', "zero_optimization.stage is 3, and the run's is 2"),
        ('{"zero_optimization": 2}', "is a section"),
        ('{"scheduler": {}}', "learning rate"),
        ('{"bf16": {"bf16_optimizer_states": true}}', "hold fp32 weights"),
        ('{\n\n"bf16": {,}}', "line 3, column 10"),
        ("[]", "not a JSON object"),
        ("[" * 100_000, "nested"),
    ],
)
def test_what_cannot_be_used_by_itself_is_said(text: str, words: str) -> None:
    error = check_text(text, 2)
    assert isinstance(error, ConfigError)
    assert error.field == "deepspeed_config"
    assert words in error.cause


@pytest.mark.parametrize(
    ("text", "settings", "words"),
    [
        ('{"gradient_clipping": "much"}', {"options": {"clip_norm": 0.5}}, 'gradient_clipping is "much"'),
        ('{"zero_optimization": {"offload_optimizer": {"device": "nvme"}}}', {}, "libaio"),
        ('{"zero_optimization": {"offload_optimizer": true}}', {}, "is a section"),
        ('{"train_batch_size": 16}', {}, "train_batch_size is 16, and the run's is 24"),
        ('{"gradient_accumulation_steps": 1}', {}, "the run's is 3"),
        ('{"train_micro_batch_size_per_gpu": 8}', {}, "the run's is 4"),
        ('{"gradient_clipping": 1.0}', {"options": {"clip_norm": 0.5}}, "the run's is 0.5"),
        ('{"bf16": {"enabled": true}}', {}, "the run's precision is auto"),
        ('{"fp16": {"enabled": true}}', {"precision": "bf16"}, "the run's precision is bf16"),
        ('{"bf16": {"enabled": false}}', {"precision": "bf16"}, "bf16.enabled is false"),
        ('{"zero_force_ds_cpu_optimizer": true}', {}, "the run's is false"),
        ('{"optimizer": {"type": "SGD"}}', {}, "the recipe brings its own"),
        ('{"optimizer": {"type": "AdamW", "params": {"lr": 0.5}}}', {}, "the run's is 0.001"),
        (
            '{"zero_optimization": {"offload_optimizer": {"device": "none"}}}',
            {"offload_optimizer": True},
            'the run\'s is "cpu"',
        ),
        (None, {"precision": "fp16"}, "not used in fp16"),
    ],
)
def test_what_contradicts_the_run_is_refused(text: str | None, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_run(config(2, text, **settings), BATCH, version="0.19.8")
    assert words in caught.value.cause
    assert caught.value.next_step


def test_versions_that_lose_gradients_are_refused_where_they_do() -> None:
    """Seen with 0.16.5: stage 2, optimizer on the CPU, four micro-batches a step."""
    wanted = config(2, offload_optimizer=True)
    with pytest.raises(ConfigError, match="loses gradients"):
        check_run(wanted, BATCH, version="0.16.5")
    check_run(wanted, BATCH, version="0.19.8")
    check_run(wanted, Batch(4, 2, 2, 16), version="0.16.5")
    check_run(wanted.replace(zero_stage=3), BATCH, version="0.16.5")


def test_agreeing_values_pass() -> None:
    text = json.dumps(
        {
            "train_batch_size": 24,
            "gradient_clipping": 1,
            "bf16": {"enabled": True},
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
        }
    )
    wanted = config(1, text, precision="bf16", options={"clip_norm": 1.0})
    check_run(wanted, BATCH, version="0.19.8")
    assert "optimizer" not in effective_config(wanted, BATCH), "the recipe's is handed over as an object"


def test_what_rankdeck_does_not_know_is_left_to_deepspeed() -> None:
    text = '{"zero_optimization": {"stage": 2, "new_in_2027": true, "reduce_bucket_size": 2.5}}'
    check_run(config(2, text), BATCH, version="0.19.8")
    assert effective_config(config(2, text))["zero_optimization"]["new_in_2027"] is True


def test_a_flag_takes_a_file_and_the_run_its_text(tmp_path: Path) -> None:
    file = tmp_path / "größe.json"
    file.write_text('\ufeff{"gradient_clipping": 0}', encoding="utf-8")
    given = with_absolute_paths(normalise({"deepspeed-config": file.name}), tmp_path)
    assert given.values["deepspeed_config"] == '{"gradient_clipping": 0}'
    again = with_absolute_paths(normalise({"deepspeed_config": ' {"a": 1}'}), tmp_path)
    assert again.values["deepspeed_config"] == ' {"a": 1}'


@pytest.mark.parametrize("name", ["missing.json", ".", "binary"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError) as caught:
        with_absolute_paths(normalise({"deepspeed_config": name}), tmp_path)
    assert caught.value.field == "deepspeed_config"
    assert "--deepspeed-config" in caught.value.next_step
