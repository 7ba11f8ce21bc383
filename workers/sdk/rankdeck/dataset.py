"""Deals a dataset out in chunks, each exactly once an epoch, over ranks, stops, crashes and resumes."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from .link import connected, rank, welcomed, world_size

_DATA_S = 600.0


class Chunk:
    """A part of the dataset: this rank's share of it.

    Attributes:
        epoch, block_id, chunk_id: Which one.
        sequence: Its number among the chunks of this process.
        indices: The dataset indices left to train for this rank, always shuffled the same way.
    """

    def __init__(
        self, grant: Mapping[str, Any], order: List[int], share: Tuple[int, int], items: Optional[Sequence[Any]]
    ) -> None:
        self.epoch: int = grant["epoch"]
        self.block_id: int = grant["block_id"]
        self.chunk_id: int = grant["chunk_id"]
        self.sequence: int = grant["sequence"]
        self._rest, self._offset = order[grant["offset"] :], int(grant["offset"])
        self._share, self._items = share, items
        self._done, self._begun = 0, False
        number, count = share
        self.indices = self._rest[number::count]

    @property
    def samples_done(self) -> int:
        """Samples of the whole chunk, over all ranks, that are handed out; all of them if it is used as a whole."""
        return self._offset + (min(self._done, len(self._rest)) if self._begun else len(self._rest))

    @property
    def is_whole(self) -> bool:
        """Whether all of its samples are handed out."""
        return self.samples_done >= self._offset + len(self._rest)

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[Any]:
        """This rank's items, one by one. What is handed out counts as trained when a checkpoint is made."""
        self._begun = True
        for index in self.indices:
            self._done = min(self._done + self._share[1], len(self._rest))
            yield self._item(index)
        self._done = len(self._rest)

    def batches(self, batch_size: int) -> Iterator[List[Any]]:
        """Lists of this rank's items, `batch_size` long; every rank gets the same number of them.

        The last ones may be shorter. If fewer samples are left than there are ranks, some ranks get an empty list.
        """
        self._begun = True
        number, count = self._share
        start = 0
        for size in _batch_sizes(len(self._rest), batch_size * count, count):
            together = self._rest[start : start + size]
            low, high = (len(together) * (number + side) // count for side in (0, 1))
            start += size
            self._done = start
            yield [self._item(index) for index in together[low:high]]
        self._done = len(self._rest)

    def done(self, samples: Optional[int] = None) -> None:
        """States how many samples, over all ranks, are trained, if that is less than handed out (a prefetcher)."""
        self._begun = True
        self._done = len(self._rest) if samples is None else min(int(samples), len(self._rest))

    def _item(self, index: int) -> Any:
        return index if self._items is None else self._items[index]


def _batch_sizes(total: int, batch: int, ranks: int) -> List[int]:
    sizes = [batch] * (total // batch)
    rest = total % batch
    if rest:
        if rest < ranks and sizes:
            # A rank without a sample would leave the others waiting in their all-reduce.
            sizes[-1] += rest
        else:
            sizes.append(rest)
    return sizes


class Chunks:
    """Chunks of a dataset, each handed out once an epoch; made by `chunks`."""

    def __init__(
        self,
        samples: int,
        items: Optional[Sequence[Any]],
        epochs: Optional[int],
        chunk_size: Optional[int],
        shuffle: bool,
    ) -> None:
        self.samples, self.epochs, self._items, self._shuffle = samples, epochs, items, shuffle
        self._open: Dict[int, Chunk] = {}
        self._sequence = 0
        welcome = welcomed()
        number, count = welcome.get("share") or (rank(), world_size())
        self._share: Tuple[int, int] = (number, count)
        self._seed = welcome.get("seed", 0)
        answer = connected().ask(ask="data", samples=samples, chunk_size=chunk_size, timeout_s=_DATA_S)
        self.hosted = bool(answer and answer.get("ok"))
        if answer and answer.get("error"):
            raise RuntimeError("rankdeck: " + answer["error"])
        self._own = self._deal(chunk_size or max(1, math.ceil(samples / 100)))

    def __iter__(self) -> Iterator[Chunk]:
        while True:
            grant = self._claim() if self.hosted else next(self._own, None)
            if grant is None or grant.get("exhausted") or (self.epochs is not None and grant["epoch"] >= self.epochs):
                return
            chunk = Chunk(grant, self._order(grant), self._share, self._items)
            self._open[chunk.sequence] = chunk
            self._sequence += 1
            yield chunk

    def commit(self, step: Optional[int] = None, staged: Optional[str] = None, final: Optional[str] = None) -> str:
        """Makes what is trained so far count. For scripts that save by themselves; others use `checkpoint`.

        Args:
            step: Optimizer steps done.
            staged: The checkpoint that was written.
            final: What it is to be called.

        Returns:
            Why it could not be committed; empty if it was, or if no host keeps count.
        """
        if not self.hosted:
            return ""
        trained = [[chunk.sequence, chunk.samples_done] for chunk in self._open.values()]
        answer = connected().ask(ask="commit", chunks=trained, step=step, staged=staged, final=final)
        if answer is None:
            return "the run host does not answer"
        if answer.get("error"):
            return str(answer["error"])
        self._open = {number: chunk for number, chunk in self._open.items() if not chunk.is_whole}
        return ""

    def _claim(self) -> Mapping[str, Any]:
        answer = connected().ask(ask="claim", sequence=self._sequence)
        if answer is None:
            raise RuntimeError("rankdeck: the run host is gone, so no more data can be claimed.")
        if answer.get("error"):
            raise RuntimeError("rankdeck: " + answer["error"])
        grant: Mapping[str, Any] = answer["ok"]
        return grant

    def _deal(self, size: int) -> Iterator[Mapping[str, Any]]:
        """Chunks without a host: every rank sees all of them and takes its share."""
        sequence = itertools.count()
        for epoch in itertools.count() if self.epochs is None else range(self.epochs):
            starts = list(range(0, self.samples, size))
            if self._shuffle:
                random.Random("%s/%s" % (self._seed, epoch)).shuffle(starts)
            for start in starts:
                count = min(size, self.samples - start)
                place = {"epoch": epoch, "block_id": 0, "chunk_id": start // size}
                yield dict(place, sequence=next(sequence), start=start, count=count, offset=0)

    def _order(self, grant: Mapping[str, Any]) -> List[int]:
        order = list(range(grant["start"], grant["start"] + grant["count"]))
        if self._shuffle:
            random.Random("%s/%s/%s" % (self._seed, grant["epoch"], grant["start"])).shuffle(order)
        return order


_current: Optional[Chunks] = None


def chunks(
    data: Union[int, Sequence[Any]],
    epochs: Optional[int] = 1,
    chunk_size: Optional[int] = None,
    shuffle: bool = True,
) -> Chunks:
    """Deals a dataset out, every sample once an epoch, over all ranks and over stops, crashes and resumes.

    In mode ddp every rank gets its share of the same chunk; in mode independent each rank gets its own chunks.

    Args:
        data: The number of samples, or a sequence (a list of files, a Dataset), whose items are then handed out.
        epochs: How often; None: without end.
        chunk_size: Samples in a chunk; if left out, about a hundredth of the dataset. A resumed run keeps its own.
        shuffle: Whether samples within a chunk are shuffled (a host always shuffles the chunks).

    Returns:
        An iterable of `Chunk`.
    """
    global _current
    items = None if isinstance(data, int) else data
    samples = data if isinstance(data, int) else len(data)
    if samples < 1:
        raise ValueError("rankdeck.chunks: the dataset is empty")
    _current = Chunks(samples, items, epochs, chunk_size, shuffle)
    return _current


def commit_current(step: Optional[int], staged: Optional[str], final: Optional[str]) -> str:
    """`Chunks.commit` of the dataset that is dealt out now, if there is one."""
    return "" if _current is None else _current.commit(step, staged, final)
