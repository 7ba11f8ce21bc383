"""ACT-v1 takes the tokenizer of the model that is named: found here, kept for the run, or else its own tokens."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers", reason="tokens are made by the tokenizers package")

from core.config import RunConfig
from core.errors import ConfigError
from core.export.export import export_run
from core.recipes.catalog import get_recipe
from core.recipes.check import check_by_recipe
from core.recipes.manifest import apply_recipe
from tests.helpers.hosted_run import curve, host, lines, make_run, write_text
from workers.data.model_tokenizer import TokenizerError, find_tokenizer_folder
from workers.recipes.actv1.tokens import KEPT, keeps_model, make_tokenizer, tokens_of
from workers.recipes.hf_causal_lm.tokens import learn

pytestmark = pytest.mark.windows

RECIPE = get_recipe("actv1")
SMALL = {
    "h_layers": 1, "l_layers": 1, "n_head": 2, "n_embd": 16, "halt_max_steps": 1, "sample_tokens": 4,
    "sample_prompt": "alpha", "warmup_steps": 2,
}  # fmt: skip
TEXTS = ["alpha 1\n", "beta 25\n", "gamma 729\n"] * 20


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder with nothing but a tokenizer of a few more tokens than there are bytes."""
    folder = tmp_path_factory.mktemp("learned") / "mein Mödell"
    folder.mkdir()
    learn(TEXTS, 270, folder)
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty Hugging Face cache."""
    folder = tmp_path / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(folder))
    return folder


def put(cache: Path, name: str, learned: Path) -> Path:
    """A model's tokenizer in the cache, as `hf download` leaves it; its snapshot."""
    root = cache / f"models--{name.replace('/', '--')}"
    shutil.copytree(learned, root / "snapshots" / "abc123")
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text("abc123", encoding="utf-8")
    return root / "snapshots" / "abc123"


def asked(model: str, *, strict: bool = False, **options: Any) -> RunConfig:
    return apply_recipe(RunConfig(recipe="actv1", model=model, strict=strict, options=options), RECIPE)


class Texts:
    """Some text to learn from, as a run gives it."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.options: Mapping[str, Any] = config.options

    def texts(self, limit_bytes: int) -> Iterator[str]:
        assert limit_bytes > 0
        yield from TEXTS


def test_a_tokenizer_is_found_in_a_folder_or_in_the_cache(learned: Path, cache: Path) -> None:
    assert find_tokenizer_folder(str(learned)) == learned
    with pytest.raises(TokenizerError, match="gpt2 is not on this machine") as caught:
        find_tokenizer_folder("gpt2")
    assert str(cache) in caught.value.cause
    old_name = put(cache, "openai-community/gpt2", learned)
    named = put(cache, "owner/name", learned)
    for name in ("gpt2", "openai-community/gpt2"):
        assert find_tokenizer_folder(name) == old_name
    for name in ("owner/name", "hf://owner/name@abc123"):
        assert find_tokenizer_folder(name) == named
    (named / "tokenizer.json").unlink()
    with pytest.raises(TokenizerError, match="owner/name is not on this machine"):
        find_tokenizer_folder("owner/name")


@pytest.mark.usefixtures("cache")
def test_the_person_is_told_before_the_start(learned: Path) -> None:
    (note,) = check_by_recipe(asked(str(learned)), RECIPE)[1]
    assert note.startswith(f"ACT-v1 uses only the tokenizer of {learned} (270 tokens); its weights")
    (note,) = check_by_recipe(asked("gpt2"), RECIPE)[1]
    assert "gpt2 is not on this machine" in note and "trains on bytes instead" in note
    (note,) = check_by_recipe(asked("gpt2", tokenizer="bpe"), RECIPE)[1]
    assert "trains on a BPE learned from the text instead" in note
    (note,) = check_by_recipe(asked("gpt2", allow_download=True), RECIPE)[1]
    assert "will be downloaded" in note
    with pytest.raises(ConfigError, match="gpt2 is not on this machine") as caught:
        check_by_recipe(asked("gpt2", strict=True), RECIPE)
    assert caught.value.field == "model" and "Without strict the run trains on bytes." in caught.value.next_step
    assert check_by_recipe(asked("gpt2", strict=True), RECIPE, resumes=True)[1] == ()


@pytest.mark.parametrize("model", ["/no/such/folder", "C:\\models\\mine", "a/b/c", "../gpt2"])
def test_a_path_that_is_not_there_is_refused(model: str) -> None:
    with pytest.raises(ConfigError, match="neither a folder on this machine nor a model's name"):
        check_by_recipe(asked(model), RECIPE)


def test_what_is_no_tokenizer_is_said_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"model": {}}', encoding="utf-8")
    (note,) = check_by_recipe(asked(str(tmp_path)), RECIPE)[1]
    assert "is not a tokenizer" in note and "trains on bytes instead" in note
    (tmp_path / "tokenizer.json").unlink()
    (note,) = check_by_recipe(asked(str(tmp_path)), RECIPE)[1]
    assert "holds no tokenizer" in note


def test_what_was_decided_stays(learned: Path, cache: Path, tmp_path: Path) -> None:
    """A run whose data is prepared again keeps its tokens, whatever the machine has by now."""
    without, source = tmp_path / "without", Texts(asked("gpt2"))
    assert make_tokenizer(source, without).kind == "bytes" and not keeps_model(without)
    put(cache, "gpt2", learned)
    assert make_tokenizer(source, without).kind == "bytes"
    held = tmp_path / "held"
    key = make_tokenizer(source, held).key
    tokens = tokens_of(held, source.options["tokenizer"])
    assert tokens.spec.open().vocab_size == 270 and tokens.prompt(tokens.spec.open(), "") == [tokens.end]
    shutil.rmtree(cache)
    assert make_tokenizer(source, held).key == key
    with pytest.raises(TokenizerError, match="not on this machine"):
        make_tokenizer(Texts(asked("gpt2", strict=True)), tmp_path / "strict")
    assert not (tmp_path / "strict" / KEPT).exists()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_vocabulary_is_the_models_and_a_resumed_run_keeps_it(learned: Path, cache: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="trains for real")
    from safetensors import safe_open

    put(cache, "gpt2", learned)
    text = write_text(tmp_path / "text.txt")
    settings = {"recipe": "actv1", "model": "gpt2", "steps": 20, "eval_every": 10, "lr": 5e-3, "options": SMALL}
    settings["sample_share"] = 100.0  # at the usual share a slow machine leaves a sample out
    whole = make_run(tmp_path / "whole", text, "ddp", 2, **settings)
    stopped = make_run(tmp_path / "stopped", text, "ddp", 2, **settings)
    assert host(whole) == 0
    assert host(stopped, stop_at=3) == 0
    shutil.rmtree(cache)
    info = json.loads((stopped.data / "data.json").read_text(encoding="utf-8"))["info"]
    assert info["vocab_size"] == 270
    shutil.rmtree(info["token_cache"])  # the tokens are made again, from the tokenizer that the run kept
    assert host(stopped) == 0
    assert curve(stopped) == curve(whole) and list(curve(whole)) == list(range(1, 21))
    with safe_open(stopped.model, framework="np") as weights:
        assert weights.get_slice("tokens.weight").get_shape() == [270, 16]
    assert not lines(stopped, "alert")
    (whole_texts, texts) = ({line["step"]: line["text"] for line in lines(run, "sample")} for run in (whole, stopped))
    assert list(whole_texts) == [10, 20] and all(whole_texts.values())
    if lines(stopped, "launch")[-1]["resumed_from"]["0"] == 10:  # on a slow machine the stop comes while it samples
        texts.setdefault(10, whole_texts[10])
    assert texts == whole_texts
    details = export_run(stopped, "safetensors").details
    assert details[-1] == f"Their tokenizer: {stopped.data / KEPT / 'tokenizer.json'}"


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_without_it_the_run_trains_on_bytes_and_says_so(cache: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="trains for real")
    assert not cache.exists()
    text = write_text(tmp_path / "text.txt")
    run = make_run(
        tmp_path / "run", text, "single", 1, recipe="actv1", model="gpt2", strict=False, steps=2, options=SMALL
    )
    assert host(run) == 0
    (alert,) = lines(run, "alert")
    assert alert["kind"] == "tokenizer" and "gpt2" in alert["cause"]
    assert json.loads((run.data / "data.json").read_text(encoding="utf-8"))["info"]["vocab_size"] == 256


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_run_that_ignored_the_model_stays_on_its_bytes(learned: Path, cache: Path, tmp_path: Path) -> None:
    """Its data is prepared again on a machine that has the model's tokenizer by now; its weights know bytes."""
    pytest.importorskip("torch", reason="trains for real")
    text = write_text(tmp_path / "text.txt")
    settings = {"recipe": "actv1", "model": "gpt2", "strict": False, "steps": 6, "options": SMALL}
    run = make_run(tmp_path / "run", text, "single", 1, **settings)
    assert host(run, stop_at=3) == 0
    (run.data / KEPT).rmdir()  # as versions left it that took no tokenizer from a model
    put(cache, "gpt2", learned)
    shutil.rmtree(json.loads((run.data / "data.json").read_text(encoding="utf-8"))["info"]["token_cache"])
    assert host(run) == 0
    assert json.loads((run.data / "data.json").read_text(encoding="utf-8"))["info"]["vocab_size"] == 256
    assert list(curve(run)) == list(range(1, 7))


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_without_a_record_other_tokens_than_the_weights_were_trained_on_are_refused(
    learned: Path, cache: Path, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="trains for real")
    text = write_text(tmp_path / "text.txt")
    run = make_run(
        tmp_path / "run", text, "single", 1, recipe="actv1", model="gpt2", strict=False, steps=6, options=SMALL
    )
    assert host(run, stop_at=3) == 0
    shutil.rmtree(run.data)
    put(cache, "gpt2", learned)
    assert host(run) == 2
    error = run.state().error
    assert error is not None and "number of samples has changed" in error["cause"] and error["next_step"]
