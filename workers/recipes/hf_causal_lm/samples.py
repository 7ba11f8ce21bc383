"""Windows of a row of tokens as samples, in which documents know nothing of each other.

A window holds the end of one document, whole ones, and the start of another. Each is given positions from 0 on:
transformers takes a place where positions do not go up by one as the start of another sequence, and keeps attention
within each (`masking_utils.find_packed_sequence_indices`). The first token of a document is not predicted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rankdeck.recipe import Indices, evaluating

IGNORED: Final = -100
# Documents that `keeps_documents_apart` passes to the model at once.
TRIED_TOKENS: Final = 7
Ids = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Packing:
    """Makes samples of tokens.

    Attributes:
        tokens: All ids, shape (tokens,).
        length: Tokens in a sample.
        ends: Each document's end, separator included, shape (documents,); None: documents are read as one text.
        opening: The tokens before such an end that open the next document (its begin-of-text token).
    """

    tokens: Ids
    length: int
    ends: Ids | None = None
    opening: int = 0

    def batch(self, samples: Indices, start: int = 0) -> dict[str, Tensor]:
        """Samples by their numbers, the first of which begins at token `start`.

        Returns:
            `input_ids` and `labels` (the next token, or `IGNORED`), shape (samples, length); with documents apart
            also `position_ids`.
        """
        places = start + samples[:, None] * self.length + np.arange(self.length + 1)
        ids = self.tokens[places].astype(np.int64)
        inputs, labels = ids[:, :-1], ids[:, 1:]
        if self.ends is None:
            return {"input_ids": torch.from_numpy(inputs), "labels": torch.from_numpy(labels)}
        documents = np.searchsorted(self.ends, places + self.opening, side="right")
        labels = np.where(documents[:, 1:] == documents[:, :-1], labels, IGNORED)
        return {
            "input_ids": torch.from_numpy(inputs),
            "labels": torch.from_numpy(labels),
            "position_ids": torch.from_numpy(positions(documents[:, :-1])),
        }


def positions(documents: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Each token's place within its document, from the start of the window at the earliest.

    `documents`: each token's document, by a number that does not fall within a row; shape (samples, length).
    """
    places = np.broadcast_to(np.arange(documents.shape[1]), documents.shape)
    begins = np.ones(documents.shape, bool)
    begins[:, 1:] = documents[:, 1:] != documents[:, :-1]
    return places - np.maximum.accumulate(np.where(begins, places, 0), axis=1)


def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """Cross-entropy of the next token in nats: the mean over the samples of each one's mean.

    So every sample counts alike, however a batch is cut into micro-batches and shared among ranks.
    """
    labels = batch["labels"]
    logits = model(**{name: value for name, value in batch.items() if name != "labels"}, use_cache=False).logits
    each = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORED, reduction="none")
    counted = (labels != IGNORED).sum(1).clamp(min=1)
    return (each.view_as(labels).sum(1) / counted).mean()


@torch.no_grad()
def keeps_documents_apart(model: nn.Module) -> bool:
    """Whether positions that start again hide one document from the next in this model, by trying it."""
    both, begin = torch.arange(1, TRIED_TOKENS + 1)[None], 4
    second, places = both[:, begin:], torch.tensor([[0, 1, 2, 3, 0, 1, 2]])
    try:
        with evaluating(model):
            alone = model(input_ids=second, use_cache=False).logits
            joined = model(input_ids=both, use_cache=False).logits[:, begin:]
            apart = model(input_ids=both, position_ids=places, use_cache=False).logits[:, begin:]
    except (TypeError, ValueError):
        return False  # it knows no positions
    differs, rounding = float((joined - alone).abs().max()), 1e-5 * float(alone.abs().max())
    return float((apart - alone).abs().max()) <= max(0.02 * differs, rounding)
