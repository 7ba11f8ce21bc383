"""One device alone."""

from __future__ import annotations

from collections.abc import Sequence

from workers.strategies.base import StateFiles, Strategy


class SingleStrategy(Strategy):
    """No other rank, no process group."""

    name = "single"

    @property
    def lane_rank(self) -> int:
        """Always 0, also when a rank among others measures something by itself."""
        return 0

    @property
    def lane_size(self) -> int:
        """Always 1."""
        return 1

    def files(self) -> StateFiles:
        """Everything."""
        return StateFiles("weights.safetensors", "optimizer.safetensors")

    def sources(self) -> tuple[Sequence[str], Sequence[str]]:
        """The run's own, else what another mode left (after a fall back to one device)."""
        return (
            ("weights.safetensors", "weights_rank0.safetensors"),
            ("optimizer.safetensors", "optimizer_shard*.safetensors", "optimizer_rank0.safetensors"),
        )
