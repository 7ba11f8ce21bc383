"""A tensor whose memory other processes of this machine see.

`share` moves what a tensor shows into shared memory and leaves everything that shows it where it is: DDP's buckets keep
their views, parameters their gradients. torch does the moving; `torch.multiprocessing` has it do the same to a tensor
that is sent to another process.

Linux: a file in `/dev/shm`, whose name torch takes away again before a byte is in it; others open it through
`/proc/<pid>/fd/<number>`. Windows: a file mapping, which lives as long as a process has it open.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

ADDRESS_BYTES: Final = 256
_FILES: Final = Path("/dev/shm")
_NO_MANAGER: Final = b"no_manager"  # torch's own word for it under Windows


class ShareError(Exception):
    """This tensor cannot be shared, or that address not be opened; the text says why."""


def refusal(needed_bytes: int) -> str | None:
    """Why not to ask for `needed_bytes`; None: it can be asked for.

    A file in `/dev/shm` may be made larger than there is room, and the first touch of what is too much ends the
    process. Containers often have 64 MB.
    """
    if sys.platform == "win32":
        return None
    if sys.platform != "linux":
        return f"there is no shared memory for {sys.platform}"
    try:
        room = os.statvfs(_FILES)
    except OSError as error:
        return f"{_FILES} cannot be looked at ({error})"
    free = room.f_bavail * room.f_frsize
    return None if free >= needed_bytes else f"{_FILES} has {free >> 20} MiB left and {needed_bytes >> 20} are needed"


def share(tensor: Tensor) -> str:
    """Moves a CPU tensor's storage into shared memory; its address for `attach`, at most `ADDRESS_BYTES` of ASCII.

    Raises:
        ShareError: It cannot be moved; it is as it was.
    """
    storage: Any = tensor.untyped_storage()
    try:
        if sys.platform == "win32":
            _, name, size = storage._share_filename_cpu_()
            return f"{name.decode('ascii')} {size}"
        descriptor, size = storage._share_fd_cpu_()
        return f"{os.getpid()} {descriptor} {os.fstat(descriptor).st_ino} {size}"
    except (RuntimeError, OSError, AttributeError, ValueError) as error:
        raise ShareError(f"{type(error).__name__}: {error}") from error


def attach(address: str, like: Tensor) -> Tensor:
    """A tensor that shows the memory behind an address.

    Args:
        address: What `share` gave in another process, which still has its tensor.
        like: A tensor of the same size, dtype and place in its storage as the one that was shared.

    Raises:
        ShareError: It is not there, or is something else.
    """
    try:
        storage = _open(address)
    except (RuntimeError, OSError, AttributeError, ValueError) as error:
        raise ShareError(f"{type(error).__name__}: {error}") from error
    if storage.nbytes() != like.untyped_storage().nbytes():
        raise ShareError(f"{storage.nbytes()} bytes are shared, and not {like.untyped_storage().nbytes()}")
    shown = torch.empty(0, dtype=like.dtype)
    return shown.set_(storage, like.storage_offset(), like.size(), like.stride())


def _open(address: str) -> torch.UntypedStorage:
    storages: Any = torch.UntypedStorage
    opened: torch.UntypedStorage
    if sys.platform == "win32":
        name, size = address.split()
        opened = storages._new_shared_filename_cpu(_NO_MANAGER, name.encode("ascii"), int(size))
        return opened
    process, number, inode, size = (int(part) for part in address.split())
    descriptor = os.open(f"/proc/{process}/fd/{number}", os.O_RDWR | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if found.st_ino != inode or found.st_size < size:
            raise ShareError("the shared memory is not the one that was said")
        opened = storages._new_shared_fd_cpu(descriptor, size)  # takes a number of its own
    finally:
        os.close(descriptor)
    return opened
