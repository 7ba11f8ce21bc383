"""The tokenizer of a model that was made elsewhere: found, copied into a run, and opened.

A model is a folder as Hugging Face's libraries write it, or a name on the Hub whose files lie in this machine's cache.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.errors import ConfigError
from core.held_files import read_utf8
from workers.data.tokens.tokenizer_spec import Encoder, TokenizerSpec


def hub_cache() -> Path:
    """The cache's folder, as the package's environment variables say."""
    folder = os.environ.get("HF_HUB_CACHE", "").strip() or os.environ.get("HUGGINGFACE_HUB_CACHE", "").strip()
    if folder:
        return Path(folder).expanduser()
    home = os.environ.get("HF_HOME", "").strip()
    if not home:
        home = str(Path(os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache") / "huggingface")
    return Path(home).expanduser() / "hub"


def snapshot_folder(repo: str, revision: str = "") -> Path | None:
    """The folder with the files of a model that were downloaded, perhaps not all; None where there are none.

    The cache's layout: ``models--owner--name/refs/<revision>`` names a commit, ``snapshots/<commit>`` has its files.

    Args:
        repo: ``owner/name``, or the bare name of an old model ("gpt2").
        revision: A branch, tag or commit; empty: the newest.
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
_HUB: Final = "hf://"
_HUB_NAME: Final = re.compile(r"(?P<repo>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[\w./-]+))?")
# The Hub moved gpt2 there and forwards the bare name: a cache may hold it under either.
_OWNER_OF_BARE_NAMES: Final = "openai-community"


class TokenizerError(ConfigError):
    """A model's tokenizer that cannot be used.

    Args:
        cause: See `RankdeckError`.
        next_step: See `RankdeckError`.
        downloadable: The name on the Hub that is not on this machine; empty for anything else.
        misnamed: It is not the name of a model.
        package: A package that is missing.
    """

    title = "The model's tokenizer cannot be used"

    def __init__(
        self, cause: str, next_step: str, *, downloadable: str = "", misnamed: bool = False, package: str = ""
    ) -> None:
        super().__init__("model", cause, next_step)
        self.downloadable = downloadable
        self.misnamed = misnamed
        self.package = package


@dataclass(frozen=True, slots=True)
class Tokens:
    """A tokenizer and what it puts around a document.

    Attributes:
        spec: The tokenizer; between documents stand `end` and `opening`.
        end: The id that ends a document; None: the model has none, and an empty line stands there.
        opening: Ids that begin one.
    """

    spec: TokenizerSpec
    end: int | None = None
    opening: tuple[int, ...] = ()

    def prompt(self, encoder: Encoder, text: str) -> list[int]:
        """A prompt's ids, as a document would begin."""
        ids = [*self.opening, *encoder.encode([text.encode("utf-8")])[0].tolist()]
        return ids or [self.end if self.end is not None else 0]


def has_tokenizer(folder: Path) -> bool:
    """Whether a folder holds files that a tokenizer can be made of."""
    return (folder / TOKENIZER).is_file() or any((folder / name).is_file() for name in _CONVERTIBLE)


def find_tokenizer_folder(model: str) -> Path:
    """The folder on this machine that holds a model's tokenizer; no network is asked.

    Args:
        model: A folder, or a name on the Hub: ``name``, ``owner/name``, ``owner/name@revision``, with or without
            ``hf://``. A folder that exists comes first.

    Raises:
        TokenizerError: There is none; says where it was looked for.
    """
    text = model.strip()
    folder = Path(text).expanduser()
    if text and not text.startswith(_HUB) and folder.is_dir():
        if has_tokenizer(folder):
            return folder.absolute()
        raise TokenizerError(
            f"The folder {folder} holds no tokenizer ({TOKENIZER}).", "Name the folder of a model with its tokenizer."
        )
    found = _HUB_NAME.fullmatch(text.removeprefix(_HUB))
    if found is None or ".." in text or folder.is_absolute():
        raise TokenizerError(
            f"{model!r} is neither a folder on this machine nor a model's name (owner/name).",
            "Check the path, or name a model of the Hugging Face Hub.",
            misnamed=True,
        )
    repo, revision = found["repo"], found["revision"] or ""
    for name in (repo, *_other_names(repo)):
        snapshot = snapshot_folder(name, revision)
        if snapshot is not None and has_tokenizer(snapshot):
            return snapshot
    raise TokenizerError(
        f"The tokenizer of {repo} is not on this machine (looked in {hub_cache()}).",
        "To use it, choose a folder that holds it as the model, or turn on Allow downloads (allow_download).",
        downloadable=repo + (f"@{revision}" if revision else ""),
    )


def download_tokenizer(name: str) -> Path:
    """Fetches a model's tokenizer, and nothing else of it, from the Hugging Face Hub into this machine's cache.

    Args:
        name: ``owner/name``, with ``@revision`` if wanted.

    Raises:
        TokenizerError: The Hub does not give it.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    repo, _, revision = name.partition("@")
    try:
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(repo, revision=revision or None, allow_patterns=list(TOKENIZER_FILES)))
    except Exception as error:  # no package, no network, no such model, a full disk: each with text of its own
        why = " ".join(str(error).split())[:400]
        raise TokenizerError(
            f"The tokenizer of {name} could not be downloaded ({type(error).__name__}: {why}).",
            "Check the name and the network, or name a folder that holds the tokenizer as the model.",
            downloadable=name,
        ) from error
    if not has_tokenizer(folder):
        cause = f"{name} has no tokenizer on the Hugging Face Hub."
        raise TokenizerError(cause, "Name another model.", downloadable=name)
    return folder


def copy_tokenizer(source: Path, folder: Path) -> None:
    """Puts a model's tokenizer into a folder, converted to ``tokenizer.json`` where it is of an older form.

    Raises:
        TokenizerError: It cannot be converted.
    """
    for name in TOKENIZER_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
    if not (folder / TOKENIZER).is_file():
        _convert(source, folder)


def tokens_in(folder: Path) -> Tokens:
    """The tokenizer that lies in a folder.

    Raises:
        TokenizerError: The package tokenizers is missing, or cannot read it.
    """
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


def _other_names(repo: str) -> tuple[str, ...]:
    owner, _, name = repo.rpartition("/")
    if not owner:
        return (f"{_OWNER_OF_BARE_NAMES}/{name}",)
    return (name,) if owner == _OWNER_OF_BARE_NAMES else ()


def _convert(model: Path, folder: Path) -> None:
    """Older models have files that transformers makes a ``tokenizer.json`` of."""
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
    """What the folder's files say of special tokens, the tokenizer's own word first."""
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
    """What the tokenizer puts before an empty text: a begin-of-text token, if it has that habit."""
    ids = [int(number) for number in tokenizer.encode("", add_special_tokens=True).ids]
    opens_with_end = len(ids) == 1 and _named(settings, "bos_token") == _named(settings, "eos_token")
    return tuple(ids[:-1] if ids and ids[-1] == end and not opens_with_end else ids)
