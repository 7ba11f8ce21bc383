"""Public names that a recipe's tokenizer needs before a run; they stay, and none needs torch.

A preview of a dataset asks a recipe for its tokenizer and nothing else. One that keeps `make_tokenizer(data, folder)`
in a file `tokenizer.py` beside its `train.py` answers without torch, two seconds sooner. A `check.py` may use it too.
"""

from workers.data.model_tokenizer import (
    TOKENIZER,
    TOKENIZER_FILES,
    TokenizerError,
    Tokens,
    copy_tokenizer,
    has_tokenizer,
    hub_cache,
    snapshot_folder,
    tokens_in,
)
from workers.data.prepared import DATA_JSON
from workers.data.tokens.byte_or_bpe import TextSource, make_tokenizer, tokenizer_in, train_bpe
from workers.data.tokens.tokenizer_spec import Encoder, TokenizerSpec

__all__ = [
    "DATA_JSON", "TOKENIZER", "TOKENIZER_FILES", "Encoder", "TextSource", "TokenizerError", "TokenizerSpec", "Tokens",
    "copy_tokenizer", "has_tokenizer", "hub_cache", "make_tokenizer", "snapshot_folder", "tokenizer_in", "tokens_in",
    "train_bpe",
]  # fmt: skip
