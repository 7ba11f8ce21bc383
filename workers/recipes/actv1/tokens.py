"""Tokenizer of the run: that of the model that `--model` names, or bytes, or a BPE learned from the text.

The decision is made once for a run. The named model's tokenizer is copied into the run's data folder, and a folder that
is there and empty says that it could not be had: a resumed run keeps the vocabulary that its weights were made for.
"""

from __future__ import annotations

import contextlib
import importlib.util
from pathlib import Path
from typing import Final

from rankdeck.recipe import (
    DATA_JSON,
    TOKENIZER,
    TextSource,
    TokenizerError,
    TokenizerSpec,
    Tokens,
    copy_tokenizer,
    download_tokenizer,
    find_tokenizer_folder,
    read_options,
    tokenizer_in,
    tokens_in,
    whole_folder,
)
from rankdeck.recipe import make_tokenizer as make_own_tokenizer
from workers.recipes.actv1.options import Options

# Below the run's data folder: the named model's tokenizer.
KEPT: Final = "tokenizer"
# The vocabulary if each byte is a token.
BYTES: Final = 256


def make_tokenizer(data: TextSource, folder: Path) -> TokenizerSpec:
    """The tokenizer of the run, its files put below `folder`; once for all ranks.

    Raises:
        TokenizerError: The named model's cannot be had, and `is_refused` says so.
    """
    if data.config.model and not (folder / KEPT).is_dir():
        _keep(data, folder / KEPT)
    return tokens_in(folder / KEPT).spec if keeps_model(folder) else make_own_tokenizer(data, folder)


def keep_own_tokens(folder: Path) -> None:
    """Has a run that was prepared without the named model's tokenizer stay without it, when it is prepared again.

    Versions that ignored `--model` left no `KEPT` folder; with the model's tokenizer such a run would not fit its
    weights.
    """
    if (folder / DATA_JSON).is_file():
        (folder / KEPT).mkdir(exist_ok=True)


def tokens_of(folder: Path, kind: str) -> Tokens:
    """What `make_tokenizer` made below `folder`, on any rank: the model's tokens, or the option `tokenizer`."""
    return tokens_in(folder / KEPT) if keeps_model(folder) else Tokens(tokenizer_in(folder, kind))


def keeps_model(folder: Path) -> bool:
    """Whether the tokens are those of the named model."""
    return (folder / KEPT / TOKENIZER).is_file()


def vocabulary_size(options: Options, model: str | None) -> int:
    """Tokens that a run would have, as far as this machine knows; BPE is taken to learn as many as it may."""
    if model:
        with contextlib.suppress(TokenizerError):
            return tokens_in(find_source(model)).spec.open().vocab_size
    return options.vocab_size if options.tokenizer == "bpe" else BYTES


def find_source(model: str) -> Path:
    """The folder on this machine with the tokenizer of a named model.

    Raises:
        TokenizerError: It cannot be had here, or not be read without a package that is missing.
    """
    folder = find_tokenizer_folder(model)
    package = "tokenizers" if (folder / TOKENIZER).is_file() else "transformers"
    if importlib.util.find_spec(package) is None:
        raise TokenizerError(
            f"The tokenizer of {model} needs the package {package}, which is not installed.",
            f"Install it: pip install {package}",
            package=package,
        )
    return folder


def is_refused(error: TokenizerError, *, strict: bool, allow_download: bool) -> bool:
    """Whether a tokenizer that cannot be had ends the run; else it trains on bytes, or on a BPE of its own."""
    return strict or error.misnamed or (allow_download and bool(error.downloadable))


def _keep(data: TextSource, kept: Path) -> None:
    """Copies the named model's tokenizer to `kept`, which stays empty where it cannot be had."""
    allowed = read_options(data, Options).allow_download
    try:
        with whole_folder(kept) as part:
            copy_tokenizer(_source(data, allow_download=allowed), part)
            tokens_in(part)  # it can be opened
    except TokenizerError as error:
        if is_refused(error, strict=data.config.strict, allow_download=allowed):
            raise
        with whole_folder(kept):
            pass


def _source(data: TextSource, *, allow_download: bool) -> Path:
    """The folder of the named model's tokenizer, which is downloaded if that is allowed."""
    try:
        return find_source(str(data.config.model))
    except TokenizerError as error:
        if not (allow_download and error.downloadable):
            raise
        return download_tokenizer(error.downloadable)
