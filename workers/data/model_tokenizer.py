"""The tokenizer of an existing model: found, copied into a run, and opened.

A model is a folder as Hugging Face's libraries write it, or a name on the Hub whose files lie in this machine's cache.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.errors import ConfigError
from core.held_files import read_utf8
from workers.data.tokens.tokenizer_spec import Encoder, TokenizerSpec


def hub_cache() -> Path:
    folder = os.environ.get("HF_HUB_CACHE", "").strip() or os.environ.get("HUGGINGFACE_HUB_CACHE", "").strip()
    if folder:
        return Path(folder).expanduser()
    home = os.environ.get("HF_HOME", "").strip()
    if not home:
        home = str(Path(os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache") / "huggingface")
    return Path(home).expanduser() / "hub"


def snapshot_folder(repo: str, revision: str = "") -> Path | None:
    """The folder with a model's downloaded files, perhaps not all; None for none.

    The cache's layout: ``models--owner--name/refs/<revision>`` names a commit, ``snapshots/<commit>`` has its files.
    """
    root = hub_cache() / f"models--{repo.replace('/', '--')}"
    wanted = revision or "main"
    try:
        commit = (root / "refs" / wanted).read_text(encoding="utf-8").strip()
    except OSError:
        commit = wanted  # a commit by its hash
    folder = root / "snapshots" / commit
    return folder if folder.is_dir() else None


TOKENIZER: Final = "tokenizer.json"
# What belongs to a model besides its architecture and weights.
TOKENIZER_FILES: Final = (
    TOKENIZER, "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
    "tokenizer.model", "spiece.model", "chat_template.jinja", "generation_config.json",
)  # fmt: skip
_CONVERTIBLE: Final = ("tokenizer.model", "vocab.json", "spiece.model")
_ENDS: Final = ("<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>", "<|im_end|>", "<|eot_id|>")


class TokenizerError(ConfigError):
    """A model's tokenizer that cannot be used."""

    title = "The tokenizer cannot be used"

    def __init__(self, cause: str, next_step: str) -> None:
        super().__init__("tokenizer_file", cause, next_step)


@dataclass(frozen=True, slots=True)
class Tokens:
    """A tokenizer and the tokens around a document.

    Attributes:
        spec: The tokenizer; between documents stand `end` and `opening`.
        end: The id that ends a document; None: the model has none, and an empty line stands there.
        opening: Ids that begin one.
    """

    spec: TokenizerSpec
    end: int | None = None
    opening: tuple[int, ...] = ()

    def prompt(self, encoder: Encoder, text: str) -> list[int]:
        ids = [*self.opening, *encoder.encode([text.encode("utf-8")])[0].tolist()]
        return ids or [self.end if self.end is not None else 0]


def has_tokenizer(folder: Path) -> bool:
    return (folder / TOKENIZER).is_file() or any((folder / name).is_file() for name in _CONVERTIBLE)


def copy_tokenizer(source: Path, folder: Path) -> None:
    """Put a model's tokenizer into a folder, converted to ``tokenizer.json`` where it is of an older form."""
    for name in TOKENIZER_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
    if not (folder / TOKENIZER).is_file():
        _convert(source, folder)


def tokens_in(folder: Path) -> Tokens:
    """The tokenizer in a folder; raises `TokenizerError` where it cannot be read."""
    tokenizer = _open(folder / TOKENIZER)
    settings = _settings(folder)
    end = _end_token(tokenizer, settings)
    opening = _opening_tokens(tokenizer, end, settings)
    path = str(folder / TOKENIZER)
    if end is None:
        return Tokens(TokenizerSpec("tokenizers", path), None, opening)
    if not opening:
        return Tokens(TokenizerSpec("tokenizers", path, separator_id=end), end, ())
    between = "".join(tokenizer.id_to_token(number) for number in (end, *opening))
    if tokenizer.encode(between, add_special_tokens=False).ids != [end, *opening]:
        return Tokens(TokenizerSpec("tokenizers", path, separator_id=end), end, ())
    return Tokens(TokenizerSpec("tokenizers", path, separator=between), end, opening)


def _convert(model: Path, folder: Path) -> None:
    """Make a ``tokenizer.json`` of an older model's files by transformers."""
    try:
        from transformers import AutoTokenizer

        made: Any = AutoTokenizer.from_pretrained(model, local_files_only=True, trust_remote_code=False)
        made.backend_tokenizer.save(str(folder / TOKENIZER))
    except Exception as error:  # each kind of tokenizer fails in its own way
        why = " ".join(str(error).split())[:300]
        raise TokenizerError(
            f"The tokenizer in {model} could not be opened ({type(error).__name__}: {why}).",
            "Name a folder that holds a tokenizer.json.",
        ) from error


def _open(path: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises nothing narrower
        raise TokenizerError(
            f"{path} is not a tokenizer that the installed package tokenizers can read ({error}).",
            "Update it: pip install -U tokenizers; or name another tokenizer.json.",
        ) from None


def _settings(folder: Path) -> dict[str, Any]:
    """Special tokens by the folder's files; ``tokenizer_config.json`` wins."""
    settings: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        try:
            found = json.loads(read_utf8(folder / name))
        except (OSError, ValueError):
            continue
        settings |= found if isinstance(found, dict) else {}
    return settings


def _named(settings: dict[str, Any], token: str) -> Any:
    value = settings.get(token)
    return value.get("content") if isinstance(value, dict) else value


def _end_token(tokenizer: Any, settings: dict[str, Any]) -> int | None:
    for text in (_named(settings, "eos_token"), *_ENDS):
        if isinstance(text, str) and (number := tokenizer.token_to_id(text)) is not None:
            return int(number)
    return None


def _opening_tokens(tokenizer: Any, end: int | None, settings: dict[str, Any]) -> tuple[int, ...]:
    """The tokens that the tokenizer puts before an empty text, such as a begin-of-text token."""
    ids = [int(number) for number in tokenizer.encode("", add_special_tokens=True).ids]
    opens_with_end = len(ids) == 1 and _named(settings, "bos_token") == _named(settings, "eos_token")
    return tuple(ids[:-1] if ids and ids[-1] == end and not opens_with_end else ids)
