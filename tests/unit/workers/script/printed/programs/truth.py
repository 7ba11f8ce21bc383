"""What a recorded program really did: written by the program itself, beside what it printed."""

import json
from pathlib import Path


class Truth:
    """Losses by step.

    Args:
        path: The JSON file to write.
        by: Program and version.
    """

    def __init__(self, path: str, by: str) -> None:
        self._path = path
        self._by = by
        self._charts: dict[str, list[tuple[int, float]]] = {"loss": [], "val_loss": []}
        self._epochs: dict[int, float] = {}

    def train(self, step: int, loss: float, epoch: float | None = None) -> None:
        self._charts["loss"].append((step, round(loss, 6)))
        if epoch is not None:
            self._epochs[step] = round(epoch, 6)

    def evaluate(self, step: int, loss: float) -> None:
        self._charts["val_loss"].append((step, round(loss, 6)))

    def write(self) -> None:
        document = {"by": self._by, "charts": self._charts, "epochs": self._epochs}
        with Path(self._path).open("w", encoding="utf-8", newline="\n") as file:
            json.dump(document, file)
            file.write("\n")
