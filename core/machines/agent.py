"""Agent: the program that Rankdeck sends to another machine over SSH, and its file store there.

It is sent as text to ``python -c``, so it uses the standard library and nothing of ours, and can be read by Python 3.8,
which it then says is too old. It takes files by their hashes, then becomes `core.cli.machine_server`, which imports it
for the same requests. Both sides speak in frames: one JSON object a line; ``"bytes": N`` says that N raw bytes follow.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, Callable, Iterable, Iterator, Sequence

READY = "rankdeck-agent"
BLOCK = 1 << 18
MAX_LINE = 64 << 20
# Larger files are linked into a tree; smaller ones copied, since a program may change its own.
LINKED_BYTES = 1 << 20
HELD_LIMIT_S = 2.0  # as `core.held_files` has it
_WRITE = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)


class Refusal(Exception):
    """A failure to be shown on the other side."""

    def __init__(self, title: str, cause: str, next_step: str) -> None:
        super().__init__(cause)
        self.error = {"title": title, "cause": cause, "next_step": next_step}


class Frames:
    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self.source = source
        self.target = target

    def send(self, frame: dict[str, Any], data: bytes = b"") -> None:
        if data:
            frame = {**frame, "bytes": len(data)}
        self.target.write(json.dumps(frame).encode("ascii") + b"\n" + data)
        self.target.flush()

    def receive(self) -> dict[str, Any] | None:
        """Read the next frame; None at the end of the stream."""
        line = self.source.readline(MAX_LINE)
        value = json.loads(line) if line.endswith(b"\n") else None
        return value if isinstance(value, dict) else None

    def blocks(self, count: int) -> Iterator[bytes]:
        """Yield the next `count` raw bytes in pieces; end early where the stream does."""
        while count:
            data = self.source.read(min(count, BLOCK))
            if not data:
                return
            count -= len(data)
            yield data


class FileStore:
    """Files that have been sent, by their SHA-256, and folders made of them."""

    def __init__(self, root: Path) -> None:
        self.files = root / "files"
        self.trees = root / "trees"

    def need(self, files: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Files of ``[[sha256, size], ...]`` that are not here, each with the number of bytes that have arrived."""
        self.files.mkdir(parents=True, exist_ok=True)
        missing = {}
        for digest, size in files:
            if _size(self.blob(digest)) != size:
                missing[digest] = min(max(_size(self._part(digest)), 0), size)
        return {"missing": missing}

    def put(self, digest: str, size: int, offset: int, blocks: Iterable[bytes]) -> dict[str, Any]:
        """Take the bytes of a file from `offset` on. What a broken connection leaves is continued the next time.

        Two connections may send the same file at once: both write the same bytes at the same places, and the first to
        have all of them puts the file in place.
        """
        part, blob = self._part(digest), self.blob(digest)
        try:
            if _size(blob) != size:
                self._write(part, offset, blocks)
            if _size(blob) != size and _size(part) == size:
                self._finish(part, blob, digest)
        except (OSError, Refusal):
            if _size(blob) != size:  # else the other connection was faster
                raise
        return {"size": size}

    def _write(self, part: Path, offset: int, blocks: Iterable[bytes]) -> None:
        if max(_size(part), 0) < offset:
            raise Refusal("A file changed", "The other machine has less of it than it had.", "Send it again.")
        with os.fdopen(_retried(lambda: os.open(str(part), _WRITE, 0o666)), "wb") as file:
            file.seek(offset)
            for block in blocks:
                file.write(block)
            file.flush()
            os.fsync(file.fileno())

    def _finish(self, part: Path, blob: Path, digest: str) -> None:
        if _retried(lambda: sha256(part)) != digest:
            _retried(part.unlink)
            raise Refusal(
                "A file arrived damaged", "What arrived does not have the hash of what was sent.", "Send it again."
            )
        _retried(lambda: part.replace(blob))

    def tree(self, name: str, files: Sequence[Sequence[Any]]) -> str:
        """Make a folder of ``[[path, sha256, size], ...]``, all of which are here, and return its path."""
        key = hashlib.sha256(json.dumps(files).encode("ascii")).hexdigest()[:16]
        target = self.trees / key
        folder = target.joinpath(*checked_path(name))
        if folder.is_dir():
            return str(folder)
        making = self.trees / f"{key}.making-{os.getpid()}-{time.time_ns()}"
        making.joinpath(name).mkdir(parents=True)
        for path, digest, size in files:
            self.place(digest, size, making.joinpath(name, *checked_path(path)))
        try:
            _retried(lambda: making.rename(target))
        except OSError:
            shutil.rmtree(making, ignore_errors=True)  # another connection was faster
            if not folder.is_dir():
                raise
        return str(folder)

    def place(self, digest: str, size: int, target: Path) -> None:
        """Put a file that is here at `target`, whole or not at all."""
        target.parent.mkdir(parents=True, exist_ok=True)
        making = target.with_name(target.name + ".rankdeck-tmp")
        if making.exists():
            making.unlink()
        blob = self.blob(digest)
        if not blob.exists():
            raise Refusal("A file is gone there", f"{target.name} was removed meanwhile.", "Try again.")
        if size < LINKED_BYTES or not _linked(blob, making):
            shutil.copyfile(blob, making)
        _retried(lambda: making.replace(target))

    def _part(self, digest: str) -> Path:
        blob = self.blob(digest)
        return blob.with_name(blob.name + ".part")

    def blob(self, digest: str) -> Path:
        if len(digest) != 64 or not all(letter in "0123456789abcdef" for letter in digest):
            raise Refusal("Invalid request", "That is not a SHA-256.", "Use the same version on both sides.")
        return self.files / digest


def checked_path(path: str) -> list[str]:
    """Split a relative path with slashes; refuse one that leaves its folder."""
    parts = path.split("/")
    if any(part in ("", ".", "..") or set(part) & set('\\:\0"<>|?*') for part in parts):
        raise Refusal("Invalid request", f"{path[:80]!r} is not a path that every system has.", "Rename that file.")
    return parts


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _retried(call: Callable[[], Any]) -> Any:
    """Retry briefly where Windows refuses an operation because a virus scanner has the new file open.

    `core.held_files` is not on this machine yet.
    """
    deadline = time.monotonic() + HELD_LIMIT_S
    while True:
        try:
            return call()
        except PermissionError:
            if os.name != "nt" or time.monotonic() >= deadline:
                raise
        time.sleep(0.02)


def refused_by_disk(error: OSError) -> dict[str, str]:
    """Make the error of a failed file operation, for the other side."""
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return {
            "title": "The disk there is full",
            "cause": f"{error.filename or 'What was sent'} could not be written, since the disk is full.",
            "next_step": "Free some space there, then try again: what has arrived is not sent again.",
        }
    return {
        "title": "The other machine refused",
        "cause": f"{error.filename or 'A file'}: {error.strerror or error}.",
        "next_step": "Check the disk and the permissions there.",
    }


def _linked(source: Path, target: Path) -> bool:
    try:
        os.link(str(source), str(target))
    except OSError:
        return False
    return True


class Agent:
    """Answers requests until the other side closes the stream."""

    def __init__(self, frames: Frames, root: Path) -> None:
        self.frames = frames
        self.root = root
        self.store = FileStore(root)

    def hello(self) -> dict[str, Any]:
        """The first frame: this machine's Python, system and folders."""
        python = self.root / "python"
        return {
            "ready": READY,
            "python": list(sys.version_info[:3]),
            "executable": sys.executable,
            "own_python": str(python / "Scripts" / "python.exe" if os.name == "nt" else python / "bin" / "python"),
            "own_folder": str(python),
            "has_own_python": (python / "ready").is_file(),
        }

    def serve(self) -> int:
        while True:
            frame = self.frames.receive()
            if frame is None:
                return 0
            count = frame.get("bytes", 0)
            rest = self.frames.blocks(count if isinstance(count, int) and count > 0 else 0)
            answer = self._answered(frame, rest)
            for _ in rest:
                pass
            self.frames.send(answer)

    def _answered(self, frame: dict[str, Any], rest: Iterator[bytes]) -> dict[str, Any]:
        try:
            return self.answer(frame, rest)
        except Refusal as refusal:
            return {"error": refusal.error}
        except OSError as error:
            return {"error": refused_by_disk(error)}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            cause = f"A field of the request cannot be read ({error!r:.200})."
            step = "Use the same version on both sides."
            return {"error": {"title": "Invalid request", "cause": cause, "next_step": step}}

    def answer(self, frame: dict[str, Any], rest: Iterator[bytes]) -> dict[str, Any]:
        op = frame.get("op")
        if op == "need":
            return self.store.need(frame["files"])
        if op == "put":
            return self.store.put(frame["sha256"], frame["size"], frame["offset"], rest)
        if op == "tree":
            return {"path": self.store.tree(frame["name"], frame["files"])}
        if op == "program":
            return self._run_program(frame["argv"])
        if op == "python_made":
            (self.root / "python" / "ready").write_bytes(b"")
            return {"ok": True}
        if op == "become":
            self._become(frame["argv"], frame["folder"], frame["env"])
        raise Refusal("Invalid request", f"There is no request {op!r}.", "Use the same version on both sides.")

    def _run_program(self, argv: list[str]) -> dict[str, Any]:
        """Run a program, each printed line of which is a frame. It ends when the connection does."""
        program = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            for line in program.stdout or ():
                self.frames.send({"line": line.decode("utf-8", "replace").rstrip()})
            return {"code": program.wait()}
        finally:
            program.kill()
            program.wait()
            if program.stdout is not None:
                program.stdout.close()

    def _become(self, argv: list[str], folder: str, env: dict[str, str]) -> None:
        """Let another program answer from here on, over the same streams; the other side waits until it does."""
        whole = {**os.environ, **{name: os.path.expanduser(value) for name, value in env.items()}}
        os.chdir(folder)
        if os.name != "nt":
            os.execve(argv[0], argv, whole)
        os._exit(subprocess.run(argv, env=whole, check=False).returncode)


def root_folder() -> Path:
    """The folder for files of other machines, in Rankdeck's own folder (`core.paths.data_folder`)."""
    home = Path.home()
    if sys.platform == "win32":
        own = Path(os.environ.get("LOCALAPPDATA") or str(home / "AppData" / "Local")) / "Rankdeck"
    elif sys.platform == "darwin":
        own = home / "Library" / "Application Support" / "rankdeck"
    else:
        own = Path(os.environ.get("XDG_DATA_HOME", "").strip() or str(home / ".local" / "share")) / "rankdeck"
    return own / "machine"


def main() -> int:
    agent = Agent(Frames(sys.stdin.buffer, sys.stdout.buffer), root_folder())
    agent.frames.send(agent.hello())
    return agent.serve()


if __name__ == "__main__":
    sys.exit(main())
