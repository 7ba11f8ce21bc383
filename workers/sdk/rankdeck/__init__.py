"""Rankdeck for a training script: log, stop, resume. Standard library only, Python 3.8 or newer.

    import rankdeck

    for step, batch in enumerate(loader):
        ...
        rankdeck.log(step=step, loss=loss)          # charted; never waits
        if rankdeck.should_stop():                  # Stop was pressed
            break

Without a run host none of it does anything: numbers are dropped, `should_stop` is False, and `chunks` deals the data
out over RANK and WORLD_SIZE. So a script that imports this package also runs by itself.

Data exactly once: `chunks` hands out parts of a dataset, `checkpoint` ties what was trained to the script's own
checkpoint. Every rank calls it at the same place. A resumed run continues from the newest complete checkpoint, and no
sample is trained into it twice or left out. Everything that `chunks` has handed out counts as trained when a
checkpoint is made, so make it after the optimizer's step:

    start = rankdeck.last_checkpoint()              # None at the very first start
    if start: model.load_state_dict(torch.load(start))
    for chunk in rankdeck.chunks(len(dataset)):
        for batch in chunk.batches(32):             # this rank's indices
            ...
        with rankdeck.checkpoint("model.pt", step=step) as path:
            if rank == 0: torch.save(model.state_dict(), path)
"""

from __future__ import annotations

from .checkpoints import checkpoint, last_checkpoint
from .dataset import Chunk, Chunks, chunks
from .link import rank, world_size
from .metrics import alert, finish, log, should_stop
from .settings import config

__all__ = [
    "Chunk", "Chunks", "alert", "checkpoint", "chunks", "config", "finish", "last_checkpoint", "log", "rank",
    "should_stop", "world_size",
]  # fmt: skip
__version__ = "1"
