"""Which tokens a model sees, and what stands between documents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="trains for real")
pytest.importorskip("tokenizers", reason="tokens are made by the tokenizers package")

from core.config import RunConfig
from rankdeck.recipe import TokenizerError, tokens_in
from tests.training.workers.recipes.hf_causal_lm.made import TEXTS, options
from workers.recipes.hf_causal_lm.tokens import LEARNED_END, learn, make_tokens

pytestmark = pytest.mark.windows


class Texts:
    """Some text to learn from, as a run gives it."""

    def __init__(self, **changes: Any) -> None:
        self.config = RunConfig()
        self.options: Mapping[str, Any] = options(**changes)

    def texts(self, limit_bytes: int) -> Iterator[str]:
        assert limit_bytes > 0
        yield from TEXTS * 20


def bos_tokenizer(folder: Path, **settings: Any) -> Path:
    """As LLaMA's: a begin-of-text token before every text, an end-of-text token that nobody adds."""
    from tokenizers import Tokenizer, processors

    folder.mkdir(exist_ok=True)
    learn(TEXTS * 20, 290, folder)
    made: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
    made.add_special_tokens(["<s>", "</s>"])
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", made.token_to_id("<s>"))]
    )
    made.save(str(folder / "tokenizer.json"))
    text = json.dumps({"bos_token": "<s>", "eos_token": {"content": "</s>"}, **settings})
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")
    return folder


def test_a_learned_tokenizer_brings_text_back_and_ends_documents(tmp_path: Path) -> None:
    tokens = make_tokens(Texts(vocab_size=280), tmp_path, None)
    encoder = tokens.spec.open()
    (ids,) = encoder.encode(["the größe, 猫".encode()])
    assert encoder.decode(ids.tolist()) == "the größe, 猫" and 256 < encoder.vocab_size <= 280
    assert tokens.opening == () and encoder.separator.tolist() == [tokens.end] and encoder.decode([0]) == LEARNED_END
    assert tokens.prompt(encoder, "") == [0]
    again = tmp_path / "again"
    assert make_tokens(Texts(vocab_size=280), again, None).spec.key == tokens.spec.key


def test_a_learned_tokenizer_opens_in_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="opens the folder")
    encoder = make_tokens(Texts(vocab_size=280), tmp_path, None).spec.open()
    opened = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert opened.eos_token == LEARNED_END
    text = "the cat sat on größe"
    assert opened(text)["input_ids"] == encoder.encode([text.encode()])[0].tolist()


def test_documents_of_a_model_that_opens_them_are_opened(tmp_path: Path) -> None:
    model = bos_tokenizer(tmp_path / "model")
    tokens = make_tokens(Texts(), tmp_path / "kept", model)
    encoder = tokens.spec.open()
    assert len(tokens.opening) == 1 and tokens.end is not None
    assert encoder.separator.tolist() == [tokens.end, *tokens.opening]
    assert encoder.decode([tokens.end, *tokens.opening]).replace(" ", "") == "</s><s>"
    assert tokens.prompt(encoder, "the")[0] == tokens.opening[0]
    assert tokens.prompt(encoder, "") == list(tokens.opening)
    kept = {path.name for path in (tmp_path / "kept").iterdir()}
    assert kept == {"tokenizer.json", "tokenizer_config.json"}


def test_a_tokenizer_that_is_named_wins(tmp_path: Path) -> None:
    model, named = bos_tokenizer(tmp_path / "model"), tmp_path / "named"
    named.mkdir()
    learn(TEXTS * 20, 270, named)
    for setting in (named, named / "tokenizer.json"):
        assert make_tokens(Texts(tokenizer_file=str(setting)), tmp_path / "kept", model).opening == ()


def test_without_an_end_of_text_an_empty_line_stands_between_documents(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    plain: Any = Tokenizer(models.BPE(vocab={"a": 0, "Ċ": 1}, merges=[]))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.save(str(tmp_path / "tokenizer.json"))
    tokens = tokens_in(tmp_path)
    assert tokens.end is None and tokens.spec.open().separator.tolist() == [1, 1]


def test_what_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"model": {"vocab": {}}}', encoding="utf-8")
    with pytest.raises(TokenizerError, match="is not a tokenizer"):
        tokens_in(tmp_path)
