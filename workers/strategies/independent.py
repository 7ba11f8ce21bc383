"""Parallel-independent: every rank trains its own copy on its own chunks; nothing is exchanged while it trains.

There is no process group at all, so this also works with torch builds that have no working gloo. What becomes of
the copies is the merge policy's business (`workers.merge`).
"""

from __future__ import annotations

from collections.abc import Sequence

from workers.strategies.base import StateFiles, Strategy


class IndependentStrategy(Strategy):
    """One lane a rank."""

    name = "independent"

    @property
    def lane(self) -> int:
        """The rank's own."""
        return self.place.rank

    @property
    def lane_rank(self) -> int:
        """Always 0: it is alone in its lane."""
        return 0

    @property
    def lane_size(self) -> int:
        """Always 1."""
        return 1

    @property
    def synchronised(self) -> bool:
        """False: ranks step by themselves."""
        return False

    def files(self) -> StateFiles:
        """A whole copy a rank."""
        rank = self.place.rank
        return StateFiles(f"weights_rank{rank}.safetensors", f"optimizer_rank{rank}.safetensors")

    def sources(self) -> tuple[Sequence[str], Sequence[str]]:
        """This rank's own copy; a rank that was not there before starts from rank 0's."""
        rank = self.place.rank
        return (
            (f"weights_rank{rank}.safetensors", "weights_rank0.safetensors", "weights.safetensors"),
            (
                f"optimizer_rank{rank}.safetensors",
                "optimizer_rank0.safetensors",
                "optimizer.safetensors",
                "optimizer_shard*.safetensors",
            ),
        )
