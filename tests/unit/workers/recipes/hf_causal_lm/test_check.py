"""What is refused before a rank is started: one clear message each."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from core.config import RunConfig
from core.errors import ConfigError
from core.recipes.catalog import get_recipe
from tests.unit.workers.recipes.hf_causal_lm.model_folder import (
    LLAMA,
    only_pickle,
    options,
    write_model,
    write_tokenizer,
)
from workers.recipe_api.refusals import Checked, Request
from workers.recipes.hf_causal_lm.check import check, check_model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "Mödell mit Raum")


def with_config(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: (folder / "config.json").write_text(json.dumps({**LLAMA, **changes}), encoding="utf-8")


def point_to(name: str) -> Callable[[Path], object]:
    text = "version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 12\n"
    return lambda folder: (folder / name).write_text(text, encoding="utf-8")


def without(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def adapter_only(folder: Path) -> None:
    (folder / "config.json").rename(folder / "adapter_config.json")


class Case(NamedTuple):
    """What is wrong with the folder or the settings, the field that is named, words of the message."""

    spoil: Callable[[Path], object] = lambda _: None
    changes: dict[str, Any] = {}  # noqa: RUF012, read only
    field: str = "model"
    words: str = ""
    seq_len: int = 32


CASES = {
    "no weights": Case(without("model.safetensors"), {}, "model", "no weights"),
    "pickle only": Case(only_pickle, {}, "model", r"pickle only \(pytorch_model\.bin\)"),
    "no config": Case(without("config.json"), {}, "model", "not a model folder"),
    "an adapter alone": Case(adapter_only, {}, "model", "LoRA adapter without its model"),
    "quantised": Case(with_config(quantization_config={"bits": 4}), {}, "model", "quantised"),
    "no tokenizer": Case(without("tokenizer.json"), {}, "tokenizer_file", "holds no tokenizer"),
    "tokenizer of another model": Case(
        lambda folder: write_tokenizer(folder / "tokenizer.json", 301), {}, "tokenizer_file", "number 300.*300 rows"
    ),
    "tokenizer file not there": Case(lambda _: None, {"tokenizer_file": "/nowhere/t.json"}, "tokenizer_file", "t.json"),
    "weights of Git LFS": Case(point_to("model.safetensors"), {}, "model", r"model\.safetensors is a Git LFS pointer"),
    "tokenizer of Git LFS": Case(point_to("tokenizer.json"), {}, "model", r"tokenizer\.json is a Git LFS pointer"),
    "too long": Case(field="seq_len", words="65 exceeds the model's maximum", seq_len=65),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_model_folder_that_cannot_be_trained_is_refused(model: Path, case: Case) -> None:
    assert check_model(str(model), 32, options()) == []
    case.spoil(model)
    with pytest.raises(ConfigError, match=case.words) as caught:
        check_model(str(model), case.seq_len, options(**case.changes))
    assert caught.value.field == case.field and caught.value.next_step


@pytest.mark.parametrize(
    ("name", "changes", "field", "words"),
    [
        ("lama", {}, "model", "nor one of gpt2, llama, qwen3"),
        ("llama", {"n_embd": 130}, "n_embd", r"divisible by heads \(130 ÷ 4\)"),
        ("llama", {"n_kv_head": 3}, "n_kv_head", "cannot share 3"),
        ("qwen3", {"n_embd": 36}, "n_embd", "9 numbers wide"),
        ("gpt2", {"n_kv_head": 2}, "n_kv_head", "as many key-value heads"),
    ],
)
def test_a_name_or_sizes_that_make_no_model_are_refused(
    name: str, changes: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        check_model(name, 32, options(**changes))
    assert caught.value.field == field and caught.value.next_step


def test_a_model_without_an_architecture_is_refused(model: Path) -> None:
    with_config(model_type="")(model)
    with pytest.raises(ConfigError, match="names no architecture"):
        check_model(str(model), 32, options())


@pytest.mark.skipif(importlib.util.find_spec("peft") is None, reason="LoRA is peft's")
def test_lora_needs_a_trained_model_and_modules_that_are_there(model: Path) -> None:
    lora = {"training": "lora"}
    assert check_model(str(model), 32, options(**lora, lora_targets="q_proj")) == []
    with pytest.raises(ConfigError, match="No module of the model is called 'query'") as caught:
        check_model(str(model), 32, options(**lora, lora_targets="q_proj, query"))
    assert caught.value.field == "lora_targets" and "q_proj" in caught.value.next_step
    assert check_model(str(model), 32, options(**lora, lora_frozen="bf16")) == []
    with pytest.raises(ConfigError, match="in one format"):
        check_model(str(model), 32, options(**lora, lora_frozen="bf16"), shards_weights=True)
    with pytest.raises(ConfigError, match="created from scratch"):
        check_model("llama", 32, options(**lora))


def test_a_learning_rate_for_a_new_model_is_noted(model: Path) -> None:
    (note,) = check_model(str(model), 32, options(), lr=1e-3)
    assert "0.001 is high" in note
    assert check_model("llama", 32, options(), lr=1e-3) == []


def test_a_model_that_is_not_here_is_not_downloaded_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ConfigError, match="owner/name is not on this machine") as caught:
        check_model("owner/name", 32, options())
    assert "allow_download=true" in caught.value.next_step and caught.value.allows == "allow_download"
    (note,) = check_model("hf://owner/name", 32, options(allow_download=True))
    assert "will be downloaded" in note


def request(model: Path, **changes: Any) -> Request:
    given = {"resumes": False, "at_default": ("seq_len",), **changes}
    chosen = {spec.name: spec.default for spec in get_recipe("hf_causal_lm").fields}
    config = RunConfig(recipe="hf_causal_lm", model=str(model), seq_len=1024, options=chosen)
    return Request(config, **given)


def test_samples_are_no_longer_than_the_models_own(model: Path) -> None:
    checked = check(request(model))
    assert isinstance(checked, Checked) and checked.settings == {"seq_len": 64}
    assert checked.notes[0] == "Samples have 64 tokens instead of 1,024: the model has no more positions."
    with pytest.raises(ConfigError, match="exceeds"):
        check(request(model, at_default=()))


def test_a_run_resumes_wherever_its_model_is(tmp_path: Path) -> None:
    assert check(request(tmp_path / "moved", resumes=True)) == []
    with pytest.raises(ConfigError):
        check(request(tmp_path / "moved"))
