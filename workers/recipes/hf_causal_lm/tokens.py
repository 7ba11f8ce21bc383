"""Which tokens the model sees: those of its own tokenizer, of one that is named, or pieces of words learned here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from workers.recipe_api import Encoder, TextSource, TokenizerSpec
from workers.recipes.hf_causal_lm.check import tokenizer_path
from workers.recipes.hf_causal_lm.folder import TOKENIZER, TOKENIZER_FILES
from workers.recipes.hf_causal_lm.refusal import RefusalError

LEARNED_END: Final = "<|endoftext|>"
_LEARN_BYTES: Final = 64 << 20
_ENDS: Final = ("<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>", "<|im_end|>", "<|eot_id|>")


@dataclass(frozen=True, slots=True)
class Tokens:
    """A tokenizer and what it puts around a document.

    Attributes:
        spec: The tokenizer; between documents stand `end` and `opening`.
        end: The id that ends a document; None: the model has none, and an empty line stands there.
        opening: Ids that begin one.
    """

    spec: TokenizerSpec
    end: int | None
    opening: tuple[int, ...]

    def prompt(self, encoder: Encoder, text: str) -> list[int]:
        """A prompt's ids, as a document would begin."""
        ids = [*self.opening, *encoder.encode([text.encode("utf-8")])[0].tolist()]
        return ids or [self.end if self.end is not None else 0]


def make_tokens(data: TextSource, folder: Path, model: Path | None) -> Tokens:
    """Puts the tokenizer's files into `folder` and opens it there.

    Args:
        data: Settings, and the text to learn from.
        folder: Gets `tokenizer.json` and what goes with it.
        model: The model's folder; None for a model from scratch.

    Raises:
        RefusalError: There is no tokenizer that can be used.
    """
    folder.mkdir(parents=True, exist_ok=True)
    named = str(data.options.get("tokenizer_file") or "")
    if named:
        _copy(tokenizer_path(named).parent, folder)
        if tokenizer_path(named).name != TOKENIZER:
            shutil.copyfile(tokenizer_path(named), folder / TOKENIZER)
    elif model is not None:
        _copy(model, folder)
        if not (folder / TOKENIZER).is_file():
            _convert(model, folder)
    else:
        learn(data.texts(_LEARN_BYTES), data.options["vocab_size"], folder)
    return tokens_in(folder)


def tokens_in(folder: Path) -> Tokens:
    """The tokenizer that lies in a folder.

    Raises:
        RefusalError: The package tokenizers is missing, or cannot read it.
    """
    tokenizer = _open(folder / TOKENIZER)
    settings = _settings(folder)
    end = _end_of(tokenizer, settings)
    opening = _opening_of(tokenizer, end, settings)
    path = str(folder / TOKENIZER)
    if end is None:
        return Tokens(TokenizerSpec("tokenizers", path), None, opening)
    if not opening:
        return Tokens(TokenizerSpec("tokenizers", path, separator_id=end), end, ())
    between = "".join(tokenizer.id_to_token(number) for number in (end, *opening))
    if tokenizer.encode(between, add_special_tokens=False).ids != [end, *opening]:
        return Tokens(TokenizerSpec("tokenizers", path, separator_id=end), end, ())
    return Tokens(TokenizerSpec("tokenizers", path, separator=between), end, opening)


def learn(texts: Iterable[str], vocab_size: int, folder: Path) -> None:
    """Learns pieces of words from texts (byte-level BPE) and writes the files of a Hugging Face tokenizer."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    bpe: Any = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[LEARNED_END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer=trainer)
    (folder / TOKENIZER).write_text(bpe.to_str(), encoding="utf-8", newline="\n")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": LEARNED_END,
        "eos_token": LEARNED_END,
        "clean_up_tokenization_spaces": False,
        "model_max_length": int(1e30),
    }
    text = json.dumps(settings, indent=2) + "\n"
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8", newline="\n")


def _copy(source: Path, folder: Path) -> None:
    for name in TOKENIZER_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)


def _convert(model: Path, folder: Path) -> None:
    """Older models have files that transformers makes a ``tokenizer.json`` of."""
    from transformers import AutoTokenizer

    try:
        made: Any = AutoTokenizer.from_pretrained(model, local_files_only=True, trust_remote_code=False)
        made.backend_tokenizer.save(str(folder / TOKENIZER))
    except Exception as error:  # each kind of tokenizer fails in its own way
        why = " ".join(str(error).split())[:300]
        raise RefusalError(
            "tokenizer_file",
            f"The tokenizer in {model} could not be opened ({type(error).__name__}: {why}).",
            "Name a tokenizer.json: --set tokenizer_file=PATH",
            title="The model has no tokenizer",
        ) from error


def _open(path: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises nothing narrower
        raise RefusalError(
            "tokenizer_file",
            f"{path} is not a tokenizer that the installed package tokenizers can read ({error}).",
            "Update it: pip install -U tokenizers; or name another tokenizer.json.",
        ) from None


def _settings(folder: Path) -> dict[str, Any]:
    """What the folder's files say of special tokens, the tokenizer's own word first."""
    settings: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        try:
            found = json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        settings |= found if isinstance(found, dict) else {}
    return settings


def _named(settings: dict[str, Any], token: str) -> Any:
    said = settings.get(token)
    return said.get("content") if isinstance(said, dict) else said


def _end_of(tokenizer: Any, settings: dict[str, Any]) -> int | None:
    for text in (_named(settings, "eos_token"), *_ENDS):
        if isinstance(text, str) and (number := tokenizer.token_to_id(text)) is not None:
            return int(number)
    return None


def _opening_of(tokenizer: Any, end: int | None, settings: dict[str, Any]) -> tuple[int, ...]:
    """What the tokenizer puts before an empty text: a begin-of-text token, if it has that habit."""
    ids = [int(number) for number in tokenizer.encode("", add_special_tokens=True).ids]
    opens_with_end = len(ids) == 1 and _named(settings, "bos_token") == _named(settings, "eos_token")
    return tuple(ids[:-1] if ids and ids[-1] == end and not opens_with_end else ids)
