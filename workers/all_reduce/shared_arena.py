"""Shared memory that all ranks of a run see, and of which nothing can be left behind.

Linux: a memory file without a name in any folder (`memfd_create`), which the others open through
`/proc/<pid>/fd/<number>`. So a kill leaves nothing in `/dev/shm`, whose size (64 MB in many containers) does not
matter. Windows: a file mapping with a random name, which lives as long as a process has it open. Not
`multiprocessing.shared_memory`: it has a name in `/dev/shm`, and on Python 3.11 and 3.12 its tracker process takes the
memory away from the others when one rank ends.

Layout: a page of 64-bit words, 128 bytes for each rank (two cache lines, so that no rank's writing slows another's),
then the ranks' slots.
"""

from __future__ import annotations

import mmap
import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import torch
import torch.distributed as dist
from torch import Tensor

ADDRESS_BYTES: Final = 256
_FILES: Final = Path("/dev/shm")
_NO_MANAGER: Final = b"no_manager"  # torch's own word for it under Windows


class ShareError(Exception):
    pass


def refusal(needed_bytes: int) -> str | None:
    """The reason against sharing `needed_bytes`; None for none.

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
    """Move a CPU tensor's storage into shared memory; its address for `attach`, at most `ADDRESS_BYTES` of ASCII.

    Views of the tensor stay valid: DDP's buckets, parameters' gradients. torch does the moving, as for
    `torch.multiprocessing`. Raises `ShareError` where it cannot be moved; it is then as it was.
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
    """A tensor over the memory at an address that `share` gave in another process, which still has its tensor.

    `like` has the size, dtype and place in its storage of the shared one. Raises `ShareError` where it is not there.
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


HEADER_BYTES: Final = 4096
# 64-bit counters of one rank in the header: 128 bytes, so two ranks never write to one cache line.
LINE_COUNTERS: Final = 16
MAX_RANKS: Final = 8

_NONCE_PLACE: Final = MAX_RANKS * LINE_COUNTERS
_WINDOWS_PREFIX: Final = "Local\\rankdeck-"


class ArenaError(Exception):
    pass


class SharedArena:
    """Memory shared by all ranks.

    `header` is its first page as signed 64-bit numbers; a write is one aligned store. `nonce` is a random number in the
    header by which the memory is recognised.
    """

    def __init__(self, memory: mmap.mmap, nonce: int, descriptor: int | None = None) -> None:
        self._memory = memory
        self._nonce = nonce
        self._descriptor = descriptor
        self._name = ""
        self.size_bytes = len(memory)
        self.header = memoryview(memory)[:HEADER_BYTES].cast("q")

    @classmethod
    def make(cls, size_bytes: int) -> SharedArena:
        """New memory, all zeros; raises `ArenaError` or `OSError` where there is none."""
        name = secrets.token_hex(16)
        nonce = secrets.randbits(62) + 1
        if sys.platform == "win32":
            arena = cls(mmap.mmap(-1, size_bytes, tagname=_WINDOWS_PREFIX + name), nonce)
        elif sys.platform == "linux":
            descriptor = os.memfd_create("rankdeck-exchange")
            try:
                os.ftruncate(descriptor, size_bytes)
                arena = cls(mmap.mmap(descriptor, size_bytes), nonce, descriptor)
            except BaseException:
                os.close(descriptor)
                raise
        else:
            raise ArenaError(f"there is no shared memory for {sys.platform}")
        arena._name = name
        arena.header[_NONCE_PLACE] = nonce
        return arena

    @property
    def address(self) -> str:
        """Another rank's argument of `attach`, at most `ADDRESS_BYTES`."""
        return f"{os.getpid()} {self._descriptor or 0} {self._name} {self._nonce} {self.size_bytes}"

    @classmethod
    def attach(cls, address: str) -> SharedArena:
        """The memory that another rank has made; raises `ArenaError` or `OSError` where it is not there."""
        try:
            process, number, name, nonce, size = address.split()
            mark, size_bytes = int(nonce), int(size)
        except ValueError as error:
            raise ArenaError(f"{address!r} is not an address of shared memory") from error
        if sys.platform == "win32":
            arena = cls(mmap.mmap(-1, size_bytes, tagname=_WINDOWS_PREFIX + name), mark)
        else:
            opened = os.open(f"/proc/{process}/fd/{number}", os.O_RDWR | os.O_CLOEXEC)
            try:
                if os.fstat(opened).st_size != size_bytes:
                    raise ArenaError("the shared memory has another size than was said")
                arena = cls(mmap.mmap(opened, size_bytes), mark)
            finally:
                os.close(opened)  # the mapping stays
        # Windows makes a new one under a name that it does not know.
        if arena.header[_NONCE_PLACE] != mark:
            arena.close()
            raise ArenaError("the shared memory is not the one that was said")
        return arena

    def seal(self) -> None:
        """Let no further process attach; to be called once all have."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def view(self, dtype: torch.dtype, place: int, count: int) -> torch.Tensor:
        """`count` elements from byte `place` on, as a tensor that keeps the memory alive."""
        return torch.frombuffer(self._memory, dtype=dtype, count=count, offset=place)

    def close(self) -> None:
        """Release it; what tensors still show of it goes with the last of them."""
        self.seal()
        with suppress(BufferError):  # a tensor still shows a part
            self.header.release()
            self._memory.close()


def join_arena(group: dist.ProcessGroup, rank: int, size_bytes: int) -> SharedArena:
    """Make memory in rank 0 and attach all the others; every rank of `group`, over the CPU, has to call this.

    Only tensors travel, nothing is unpickled. Raises `ArenaError` on all ranks where it did not work on one.
    """
    arena: SharedArena | None = None
    problem = "another rank could not have it"
    letter = torch.zeros(ADDRESS_BYTES, dtype=torch.uint8)
    if rank == 0:
        try:
            arena = SharedArena.make(size_bytes)
            address = arena.address.encode("ascii")
            letter[: len(address)] = torch.tensor(list(address), dtype=torch.uint8)
        except (ArenaError, OSError, ValueError) as error:
            problem = str(error)
    dist.broadcast(letter, 0, group=group)
    if rank != 0:
        try:
            arena = SharedArena.attach(bytes(letter.tolist()).rstrip(b"\0").decode("ascii"))
        except (ArenaError, OSError, ValueError) as error:
            problem = str(error)
    together = torch.tensor([int(arena is not None)], dtype=torch.int64)
    dist.all_reduce(together, op=dist.ReduceOp.MIN, group=group)
    if arena is not None:
        arena.seal()
    if arena is None or not together.item():
        if arena is not None:
            arena.close()
        raise ArenaError(problem)
    return arena
