"""The tokens that the model sees, for a preview that needs no torch."""

from rankdeck.recipe import make_tokenizer

__all__ = ["make_tokenizer"]
