"""The tokens that the model sees, for a preview that needs no torch."""

from workers.recipes.actv1.tokens import make_tokenizer

__all__ = ["make_tokenizer"]
