"""What a recipe's `tokenizer.py` needs: names that are public and stay, and no torch.

A preview of a dataset asks a recipe for its tokenizer and nothing else. One that keeps `make_tokenizer(data, folder)`
in a file `tokenizer.py` beside its `train.py` answers without torch, two seconds sooner.
"""

from workers.data.byte_or_bpe import TextSource, make_tokenizer, tokenizer_in
from workers.data.tokenizer_spec import Encoder, TokenizerSpec

__all__ = ["Encoder", "TextSource", "TokenizerSpec", "make_tokenizer", "tokenizer_in"]
