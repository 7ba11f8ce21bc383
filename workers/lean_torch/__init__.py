"""Imports PyTorch without the parts that a rank does not use which trains eagerly and on real tensors.

They stay available: whoever asks for them gets them, a little later than otherwise.
"""

from __future__ import annotations

import sys

from workers.lean_torch.sleeping_meta import import_without_meta


def import_torch() -> None:
    """Does so; nothing happens where torch is imported already.

    Call it before the first `import torch` of a process that trains.
    """
    if "torch" in sys.modules:
        return
    import_without_meta()
    from workers.lean_torch.sleeping_compiler import let_compiler_sleep

    let_compiler_sleep()
