"""What a training script may tell Rankdeck, and ask it. One file, standard library only, Python 3.8 or newer.

    import rankdeck

    for step, batch in enumerate(loader):
        ...
        rankdeck.log(step=step, loss=loss)          # charted; never waits
        if rankdeck.should_stop():                  # somebody pressed Stop
            break

Without a run host nothing of it does anything: numbers go nowhere, `should_stop` is False, `chunks` deals the data
out among RANK and WORLD_SIZE. So a script that imports this file also runs by itself.

Data exactly once: `chunks` hands out pieces of a dataset, `checkpoint` ties what was trained to the script's own
checkpoint. Every rank calls it at the same place; whatever happens, a resumed run goes on where the newest whole
checkpoint stands, and no sample is trained twice into it or left out. Whatever `chunks` has handed out counts as
trained when a checkpoint is made, so make it behind the optimizer's step:

    start = rankdeck.last_checkpoint()              # None at the very first start
    if start: model.load_state_dict(torch.load(start))
    for chunk in rankdeck.chunks(len(dataset)):
        for batch in chunk.batches(32):             # this rank's indices
            ...
        with rankdeck.checkpoint("model.pt", step=step) as path:
            if rank == 0: torch.save(model.state_dict(), path)

`import rankdeck as wandb` is enough for scripts that log to Weights & Biases: `init`, `log`, `config`, `finish`.
"""

import atexit
import collections
import json
import math
import os
import random
import shutil
import socket
import sys
import threading
import time
import uuid

__all__ = [
    "Chunk", "Chunks", "alert", "checkpoint", "chunks", "config", "define_metric", "finish", "init", "last_checkpoint",
    "log", "login", "rank", "run", "save", "should_stop", "unwatch", "watch", "world_size",
]  # fmt: skip
__version__ = "1"

_MAX_PENDING = 20000
_CONNECT_S = 5.0
_ANSWER_S = 60.0
_MAX_LINE = 1 << 20


# --- the line to the run's host --------------------------------------------------------------------------


class _Link:
    """One process's connection. Numbers go through a queue and a thread; a host that is slow or gone costs nothing."""

    def __init__(self):
        self.port = os.environ.get("RANKDECK_SDK_PORT", "")
        self.alive = bool(self.port)
        self.stop = False
        self.welcome = {}
        self.ready = threading.Event()
        self.dropped = 0
        self._pending = collections.deque()
        self._wake = threading.Event()
        self._idle = threading.Event()
        self._answers = {}
        self._lock = threading.Lock()
        self._number = 0
        self._socket = None
        if self.alive:
            threading.Thread(target=self._send, name="rankdeck-sender", daemon=True).start()
        else:
            self.ready.set()

    def put(self, message):
        """Queues a message (a dict, or something that makes one later); never waits."""
        if not self.alive:
            return
        if len(self._pending) >= _MAX_PENDING:
            self.dropped += 1
            return
        self._idle.clear()
        self._pending.append(message)
        self._wake.set()

    def ask(self, timeout_s=_ANSWER_S, **message):
        """Sends a question and waits for its answer, a bounded time.

        Returns:
            The answer, or None when there is nobody to answer.
        """
        if not self.alive:
            return None
        answered = threading.Event()
        with self._lock:
            self._number += 1
            number = self._number
            self._answers[number] = [answered, None]
        self.put(dict(message, id=number))
        deadline = time.monotonic() + timeout_s
        while self.alive and not answered.wait(0.25) and time.monotonic() < deadline:
            pass
        return self._answers.pop(number)[1]

    def flush(self, timeout_s=2.0):
        """Waits a bounded time until everything is handed to the system."""
        deadline = time.monotonic() + timeout_s
        while self.alive and self._pending and time.monotonic() < deadline:
            self._idle.wait(0.05)

    def _send(self):
        try:
            self._open()
            while True:
                self._wake.wait(1.0)
                self._wake.clear()
                while self._pending:
                    lines = []
                    while self._pending and len(lines) < 500:
                        line = _encoded(self._pending[0])
                        if line is not None:
                            lines.append(line)
                        self._pending.popleft()
                    if self.dropped:
                        lines.append(_encoded({"dropped": self.dropped}))
                        self.dropped = 0
                    self._socket.sendall(b"".join(lines))
                self._idle.set()
        except Exception:  # whatever it is, a training script is not to hear of it
            self._lose()

    def _open(self):
        self._socket = socket.create_connection(("127.0.0.1", int(self.port)), timeout=_CONNECT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = {"hello": os.environ.get("RANKDECK_SDK_TOKEN", ""), "sdk": 1, "pid": os.getpid()}
        self._socket.sendall(_encoded(hello))
        lines = self._socket.makefile("rb")
        welcome = json.loads(lines.readline(_MAX_LINE))
        self.welcome, self.stop = welcome, bool(welcome.get("stop"))
        self._socket.settimeout(None)
        self.ready.set()
        threading.Thread(target=self._receive, args=(lines,), name="rankdeck-receiver", daemon=True).start()

    def _receive(self, lines):
        try:
            for line in iter(lambda: lines.readline(_MAX_LINE), b""):
                message = json.loads(line)
                if message.get("stop"):
                    self.stop = True
                waiting = self._answers.get(message.get("id"))
                if waiting is not None:
                    waiting[1] = message
                    waiting[0].set()
        except Exception:
            pass
        self._lose()

    def _lose(self):
        self.alive = False
        self._pending.clear()
        self.ready.set()
        self._idle.set()
        try:
            if self._socket is not None:
                self._socket.close()
        except OSError:
            pass


_link = None
_link_lock = threading.Lock()


def _connected():
    """This process's link, made when it is first needed."""
    global _link
    if _link is None:
        with _link_lock:
            if _link is None:
                _link = _Link()
    return _link


def _forget():
    """A forked process (a data loader's worker) has the threads of none and must not write into our socket."""
    global _link, _link_lock
    _link, _link_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _at_exit():
    if _link is not None:
        _link.flush()


atexit.register(_at_exit)


def _encoded(message):
    """One line, or None for what cannot be sent."""
    try:
        if "log" in message:
            message = dict(
                message, log={name: number for name, number in _numbers(message["log"]) if number is not None}
            )
        line = json.dumps(message).encode("utf-8") + b"\n"
    except Exception:
        return None
    return line if len(line) <= _MAX_LINE else None


def _numbers(values, prefix=""):
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _numbers(value, prefix + str(name) + "/")
        else:
            yield prefix + str(name), _number(value)


def _number(value):
    """A number, also out of a tensor or array of one element; None for anything else."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (int, float)):
        return value
    try:
        plain = value.item()
    except Exception:
        return None
    return plain if isinstance(plain, (int, float)) else None


def _taken_now(value):
    """A tensor on the CPU may be changed a moment later, so it is read at once; one on a GPU would make us wait."""
    if isinstance(value, dict):
        return {name: _taken_now(item) for name, item in value.items()}
    if isinstance(value, (int, float, str, bytes)) or value is None or getattr(value, "is_cuda", False):
        return value
    return _number(value)


# --- numbers ---------------------------------------------------------------------------------------------

_own_step = 0
_gathered = {}


def log(data=None, step=None, commit=None, **values):
    """Charts numbers: `log(step=10, loss=0.5)`, or as wandb's `log({"loss": 0.5}, step=10)`.

    Args:
        data: Names and numbers; dicts in it are joined with ``/``. What is no number is passed over.
        step: Optimizer steps done. Left out, calls are counted.
        commit: False keeps the numbers for the next call, which then counts.
        values: More names and numbers.
    """
    global _own_step, _gathered
    found = dict(data) if isinstance(data, dict) else {}
    found.update((name, value) for name, value in values.items() if name not in ("sync",))
    if step is None and isinstance(found.get("step"), (int, float)) and not isinstance(found["step"], bool):
        step = found.pop("step")
    link = _connected()
    if not link.alive:
        return
    _gathered.update((name, _taken_now(value)) for name, value in found.items())
    if commit is False:
        return
    found, _gathered = _gathered, {}
    if step is None:
        step = _own_step
    try:
        step = int(step)
    except (TypeError, ValueError):
        step = _own_step
    _own_step = step + 1
    link.put({"log": found, "step": step, "ts": time.time()})


_has_polled = False


def should_stop():
    """Whether somebody asked the run to stop. Save what is to be kept, then end; there is a deadline."""
    global _has_polled
    link = _connected()
    if not _has_polled and link.alive:
        _has_polled = True
        link.put({"polls": True})
    return link.stop


def rank():
    """This process's rank; 0 where there is one process."""
    return int(os.environ.get("RANK") or 0)


def world_size():
    """How many processes train together."""
    return int(os.environ.get("WORLD_SIZE") or 1)


# --- data, exactly once ----------------------------------------------------------------------------------


class Chunk:
    """A piece of the dataset: this rank's share of it.

    Attributes:
        epoch, block_id, chunk_id: Which one.
        indices: The dataset indices left to train for this rank, shuffled the same way each time.
    """

    def __init__(self, grant, order, share, items):
        self.epoch, self.block_id, self.chunk_id = grant["epoch"], grant["block_id"], grant["chunk_id"]
        self.sequence = grant["sequence"]
        self._rest, self._offset = order[grant["offset"] :], grant["offset"]
        self._share, self._items = share, items
        self._done, self._begun = 0, False
        number, count = share
        self.indices = self._rest[number::count]

    @property
    def samples_done(self):
        """Samples of the whole chunk, over all ranks, that are handed out; all of them where it is used as a whole."""
        return self._offset + (min(self._done, len(self._rest)) if self._begun else len(self._rest))

    def __len__(self):
        return len(self.indices)

    def __iter__(self):
        """This rank's items, one by one. What was handed out counts as trained when a checkpoint is made."""
        self._begun = True
        for index in self.indices:
            self._done = min(self._done + self._share[1], len(self._rest))
            yield self._item(index)
        self._done = len(self._rest)

    def batches(self, batch_size):
        """Lists of this rank's items, `batch_size` long; every rank gets the same number of them.

        The last ones may be shorter. A chunk with fewer samples left than ranks leaves some ranks an empty list.
        """
        self._begun = True
        number, count = self._share
        sizes = _batch_sizes(len(self._rest), batch_size * count, count)
        start = 0
        for size in sizes:
            together = self._rest[start : start + size]
            low, high = (len(together) * (number + side) // count for side in (0, 1))
            start += size
            self._done = start
            yield [self._item(index) for index in together[low:high]]
        self._done = len(self._rest)

    def done(self, samples=None):
        """Says how many of its samples, over all ranks, are trained, where what is handed out is not (a prefetcher)."""
        self._begun = True
        self._done = len(self._rest) if samples is None else min(int(samples), len(self._rest))

    def _item(self, index):
        return index if self._items is None else self._items[index]

    @property
    def _is_whole(self):
        return self.samples_done >= self._offset + len(self._rest)


def _batch_sizes(total, batch, ranks):
    sizes = [batch] * (total // batch)
    rest = total % batch
    if rest:
        if rest < ranks and sizes:
            sizes[-1] += rest  # nobody is left without a sample, or ranks that meet each step would wait for ever
        else:
            sizes.append(rest)
    return sizes


class Chunks:
    """Chunks of a dataset, each handed out once an epoch; made by `chunks`."""

    def __init__(self, samples, items, epochs, chunk_size, shuffle):
        self.samples, self.epochs, self._items, self._shuffle = samples, epochs, items, shuffle
        self._open = {}
        self._sequence = 0
        link = _connected()
        link.ready.wait(_CONNECT_S)
        self._share = tuple(link.welcome.get("share") or (rank(), world_size()))
        self._seed = link.welcome.get("seed", 0)
        answer = link.ask(ask="data", samples=samples, chunk_size=chunk_size, timeout_s=600.0)
        self._hosted = bool(answer and answer.get("ok"))
        if answer and answer.get("error"):
            raise RuntimeError("rankdeck: " + answer["error"])
        self._own = None if self._hosted else self._deal(chunk_size or _chunk_size(samples))
        _state["chunks"] = self

    def __iter__(self):
        while True:
            grant = self._claim() if self._hosted else next(self._own, None)
            if grant is None or grant.get("exhausted") or (self.epochs is not None and grant["epoch"] >= self.epochs):
                return
            chunk = Chunk(grant, self._order(grant), self._share, self._items)
            self._open[chunk.sequence] = chunk
            self._sequence += 1
            yield chunk

    def commit(self, step=None):
        """Makes what is trained so far count, where the script saves by itself; see `checkpoint`."""
        return _commit(step, None, None)

    def _claim(self):
        answer = _connected().ask(ask="claim", sequence=self._sequence)
        if answer is None:
            raise RuntimeError("rankdeck: the run's host is gone, so no more data can be claimed.")
        if answer.get("error"):
            raise RuntimeError("rankdeck: " + answer["error"])
        return answer["ok"]

    def _deal(self, size):
        """Chunks without a host: every rank sees all of them and takes its share."""
        sequence = 0
        epoch = 0
        while self.epochs is None or epoch < self.epochs:
            starts = list(range(0, self.samples, size))
            if self._shuffle:
                random.Random("%s/%s" % (self._seed, epoch)).shuffle(starts)
            for start in starts:
                count = min(size, self.samples - start)
                yield {
                    "sequence": sequence, "epoch": epoch, "block_id": 0, "chunk_id": start // size, "start": start,
                    "count": count, "offset": 0,
                }  # fmt: skip
                sequence += 1
            epoch += 1

    def _order(self, grant):
        order = list(range(grant["start"], grant["start"] + grant["count"]))
        if self._shuffle:
            random.Random("%s/%s/%s" % (self._seed, grant["epoch"], grant["start"])).shuffle(order)
        return order

    def _report(self):
        """What is trained, as the host wants it: ``[[sequence, samples_done], …]``."""
        return [[chunk.sequence, chunk.samples_done] for chunk in self._open.values()]

    def _committed(self):
        self._open = {number: chunk for number, chunk in self._open.items() if not chunk._is_whole}


_state = {"chunks": None}


def _chunk_size(samples):
    return max(1, math.ceil(samples / 100))


def chunks(data, epochs=1, chunk_size=None, shuffle=True):
    """Deals a dataset out, every sample once an epoch, over all ranks and over stops, crashes and resumes.

    In mode ddp every rank gets its share of the same chunk; in mode independent each rank gets chunks of its own.

    Args:
        data: The number of samples, or a sequence (a list of files, a Dataset), whose items are then handed out.
        epochs: How often; None: for ever.
        chunk_size: Samples in a chunk; left out, about a hundredth of the dataset. Stays as it is when resumed.
        shuffle: Whether samples within a chunk are shuffled (chunks always are, by a host).

    Returns:
        An iterable of `Chunk`.
    """
    items = None if isinstance(data, int) else data
    samples = data if items is None else len(items)
    if samples < 1:
        raise ValueError("rankdeck.chunks: the dataset is empty")
    return Chunks(samples, items, epochs, chunk_size, shuffle)


class checkpoint:
    """Ties the script's own checkpoint to the data seen: ``with checkpoint("model.pt") as path: save(path)``.

    Write to `path`, which is a new name beside the old file: only when the host has taken note of both does it become
    the file, so a crash at any moment leaves a pair that belongs together. Every rank enters it at the same place;
    those that save nothing write nothing. A folder (``save_pretrained(path)``) is as good as a file.

    Args:
        path: Where the checkpoint is to be; None where the script saves by itself inside the block.
        step: Optimizer steps done, for the run's history.
    """

    def __init__(self, path=None, step=None):
        self._final = None if path is None else os.path.abspath(os.fspath(path))
        self._step = step
        self._staged = None

    def __enter__(self):
        if self._final is None:
            return None
        folder, name = os.path.split(self._final)
        stem, suffix = os.path.splitext(name)
        os.makedirs(folder, exist_ok=True)
        self._staged = os.path.join(folder, "%s.partial-%s%s" % (stem, uuid.uuid4().hex[:8], suffix))
        return self._staged

    def __exit__(self, kind, error, trace):
        staged = self._staged if self._staged is not None and os.path.exists(self._staged) else None
        if kind is not None:
            if staged is not None:
                _remove(staged)
            return False
        if staged is not None:
            _sync(staged)
        trouble = _commit(self._step, staged, self._final if staged is not None else None)
        if staged is not None and os.path.exists(staged):
            _replace(staged, self._final)
        if trouble:
            sys.stderr.write("rankdeck: the data was not committed with this checkpoint: %s\n" % trouble)
        return False


def last_checkpoint():
    """The newest checkpoint that belongs to the data already trained; None at a first start or without a host."""
    link = _connected()
    link.ready.wait(_CONNECT_S)
    return link.welcome.get("checkpoint")


def _commit(step, staged, final):
    """Why it could not be committed; empty when it was, or when there is nothing to commit."""
    dealt, link = _state["chunks"], _connected()
    if dealt is None or not dealt._hosted:
        return ""
    message = {"ask": "commit", "chunks": dealt._report(), "step": step, "staged": staged, "final": final}
    answer = link.ask(**message)
    if answer is None:
        return "the run's host does not answer"
    if answer.get("error"):
        return answer["error"]
    dealt._committed()
    return ""


def _sync(path):
    files = [path]
    if os.path.isdir(path):
        files = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
    for name in files:
        try:
            with open(name, "r+b") as file:
                os.fsync(file.fileno())
        except OSError:
            pass


def _replace(staged, final):
    """`staged` becomes `final`; on Windows somebody may have it open for a moment."""
    old = None
    if os.path.isdir(final) and not os.path.islink(final):
        old = final + ".old-" + uuid.uuid4().hex[:8]
    for attempt in range(50):
        try:
            if old is not None and os.path.exists(final):
                os.replace(final, old)
            os.replace(staged, final)
            break
        except PermissionError:
            if attempt == 49:
                raise
            time.sleep(0.1)
    if old is not None:
        _remove(old)


def _remove(path):
    try:
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.remove(path)
    except OSError:
        pass


# --- the names that wandb's users know -------------------------------------------------------------------


class _Config(dict):
    """The run's settings, and what the script adds; read as a dict or by attributes."""

    def _load(self):
        if "_loaded" not in self.__dict__:
            self.__dict__["_loaded"] = True
            link = _connected()
            link.ready.wait(_CONNECT_S)
            for name, value in (link.welcome.get("config") or {}).items():
                dict.setdefault(self, name, value)
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self[name] = value

    def __getitem__(self, name):
        return dict.__getitem__(self._load(), name)

    def get(self, name, default=None):
        """As a dict's."""
        return dict.get(self._load(), name, default)

    def __contains__(self, name):
        return dict.__contains__(self._load(), name)

    def __iter__(self):
        return dict.__iter__(self._load())

    def __len__(self):
        return dict.__len__(self._load())

    def keys(self):
        """As a dict's."""
        return dict.keys(self._load())

    def values(self):
        """As a dict's."""
        return dict.values(self._load())

    def items(self):
        """As a dict's."""
        return dict.items(self._load())

    def __repr__(self):
        return dict.__repr__(self._load())

    def as_dict(self):
        """A copy."""
        return dict(self.items())

    def update(self, values=None, allow_val_change=None, **more):
        """Takes settings: a mapping or an `argparse.Namespace`."""
        if values is not None and not hasattr(values, "keys"):
            values = vars(values) if hasattr(values, "__dict__") else dict(values)
        dict.update(self, values or {}, **more)

    def setdefaults(self, values):
        """Takes settings that are not there yet."""
        for name, value in dict(values).items():
            self._load().setdefault(name, value)


class _Run:
    """What `init` returns; the methods are this module's functions."""

    def __init__(self):
        self.summary = {}
        self.tags = ()
        self.notes = self.entity = self.project = self.group = None
        self.url = ""

    name = property(lambda self: os.environ.get("RANKDECK_RUN_ID", ""))
    id = name
    dir = property(lambda self: os.environ.get("RANKDECK_RUN_DIR", os.getcwd()))
    step = property(lambda self: _own_step)
    config = property(lambda self: config)

    def log(self, data=None, step=None, commit=None, **values):
        """See `rankdeck.log`."""
        log(data, step, commit, **values)

    def finish(self, *_, **__):
        """See `rankdeck.finish`."""
        finish()

    def alert(self, title="", text="", *_, **__):
        """See `rankdeck.alert`."""
        alert(title, text)

    def _nothing(self, *_, **__):
        return None

    watch = unwatch = save = define_metric = log_artifact = log_code = use_artifact = mark_preempting = _nothing

    def __enter__(self):
        return self

    def __exit__(self, *_):
        finish()
        return False


config = _Config()
run = None


def init(project=None, config=None, name=None, **_):
    """Begins logging; takes what wandb's `init` takes and needs none of it."""
    global run
    settings = globals()["config"]
    if config is not None and not isinstance(config, str):
        settings.update(config)
    if run is None:
        run = _Run()
        run.project = project
    _connected()
    return run


def finish(*_, **__):
    """Hands over what is still on its way; more may be logged afterwards."""
    link = _connected()
    if _gathered:
        log({}, commit=True)
    link.flush()


def alert(title="", text="", *_, **__):
    """Shows a person a message."""
    _connected().put({"alert": str(title)[:200], "text": str(text)[:2000]})


def watch(*_, **__):
    """Does nothing; for wandb's users."""


def unwatch(*_, **__):
    """Does nothing; for wandb's users."""


def save(*_, **__):
    """Does nothing; for wandb's users."""


def define_metric(*_, **__):
    """Does nothing; for wandb's users."""


def login(*_, **__):
    """Does nothing, successfully; for wandb's users."""
    return True


class _Media:
    """Pictures, tables and such are not kept."""

    def __init__(self, *_, **__):
        pass

    def add_data(self, *_, **__):
        """Does nothing."""


Image = Table = Histogram = Video = Audio = Html = Artifact = Object3D = _Media


def Settings(**settings):
    """A dict; nothing in it is needed."""
    return settings
