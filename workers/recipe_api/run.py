"""Everything a recipe needs: this module's names are public and stay.

A recipe is a folder with `recipe.toml` (its form) and `train.py` with one function, `main(run)`. Forty lines do::

    import numpy as np, torch
    from rankdeck.recipe import Optimization, PreparedData, Run, Task

    def build(run: Run, folder):                       # once, on rank 0
        values = np.loadtxt(run.dataset_files()[0])
        np.save(folder / "values.npy", values)
        return PreparedData(samples=len(values) - 100, val_samples=100)

    def main(run: Run) -> None:                        # on every rank
        run.prepare(lambda folder: build(run, folder))
        values = torch.from_numpy(np.load(run.data_dir / "values.npy"))
        n = run.samples
        run.fit(Task(
            model=torch.nn.Linear(1, 1),
            batch=lambda i: values[i],                 # i: dataset indices
            val_batch=lambda i: values[n + i],
            loss=lambda model, v: (model(v[:, :1]) - v[:, 1:]).square().mean(),
            optimization=Optimization(clip_norm=1.0),
        ))

Devices, modes, accumulation, precision, evaluation, commits, resume and stopping are the trainer's business.

A recipe that says `exports = ["hf"]` also has `export(given)`, see `Export`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from core.config import RunConfig
from core.data.dataset import is_hub, list_dataset
from core.data.listing import ALL_FILES
from core.errors import ConfigError, DatasetError
from core.held_files import read_utf8
from core.paths import token_cache_dir
from workers.data.prepared import DATA_JSON, PreparedData, give_back_spare_memory, prepare
from workers.data.reading.corpus import MAX_BAD_ROWS, OPTIONS, Corpus, open_corpus, texts
from workers.data.reading.row_counts import BadRowLimit
from workers.data.tokens.byte_or_bpe import TextSource, make_tokenizer, tokenizer_in
from workers.data.tokens.token_cache import TokenData, is_whole, open_ends, open_tokens, tokenise
from workers.data.tokens.tokenizer_spec import Encoder, TokenizerSpec
from workers.data.window_batches import WindowBatches, spread
from workers.data.windows import Windows, cut_windows, opening_text
from workers.decoding import KeyValues, attend, write_tokens
from workers.optim.optimizer import Optimization
from workers.training.batches import Indices
from workers.training.session import Session
from workers.training.task import LossAndMetrics, StepSamples, Task
from workers.training.trainer import Trainer
from workers.training.training_mode import evaluating

__all__ = [
    "ConfigError", "DatasetError", "Encoder", "Export", "Indices", "KeyValues", "LossAndMetrics", "Measured",
    "Optimization", "PreparedData", "Run", "StepSamples", "Task", "TextSource", "TokenData", "TokenizerSpec",
    "WindowBatches", "Windows", "attend", "cut_windows", "evaluating", "make_tokenizer", "opening_text", "spread",
    "tokenizer_in", "write_tokens",
]  # fmt: skip

# Under this name `info` says where the tokens lie.
_TOKEN_CACHE: Final = "token_cache"

_SAY_EVERY_S: Final = 0.3
_SAY_AGAIN_S: Final = 10.0
_DATA_TIMEOUT_S: Final = 86_400.0


class Run:
    """What `main(run)` gets: the run as its recipe sees it.

    Attributes:
        config: What was asked, complete with the recipe's defaults.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._corpus: Corpus | None = None
        self._said, self._said_at = "", 0.0
        self.config: RunConfig = session.config

    @property
    def options(self) -> Mapping[str, Any]:
        """The recipe's own fields, as `recipe.toml` names them."""
        return self.config.options

    @property
    def has_weights(self) -> bool:
        """True where the run resumes from a checkpoint, whose weights replace those that the model is made with."""
        return self._session.resume_folder is not None

    @property
    def rank(self) -> int:
        return self._session.strategy.place.rank

    @property
    def device(self) -> torch.device:
        """What this rank trains on."""
        return self._session.strategy.place.device

    @property
    def forward_is_collective(self) -> bool:
        """True where each rank holds only a part of the weights (FSDP, ZeRO stages 2 and 3).

        Every rank must then call every layer equally often, in the same order: a pass that could end early on one
        rank would leave the others waiting.
        """
        return self._session.strategy.forward_is_collective

    def keep_sampling(self, broken: bool = False) -> bool:
        """Whether a text that is being written continues: to be asked before each token (`write_tokens` does).

        False once the run is to stop or the sample has taken its share of the time, so that a stop need not wait for
        the text. Where every rank takes part in each forward pass, all get the same answer and all must ask alike.

        Args:
            broken: What the model gives are no numbers, so that there is no point in writing more.
        """
        return self._session.keep_sampling(broken)

    def sample_tokens(
        self, next_logits: Callable[[Tensor], Tensor], prompt: Sequence[int], count: int, temperature: float
    ) -> list[int]:
        """The tokens that continue a prompt, for `Task.sample`: `write_tokens`, ended early where the run is to stop.

        Always with the same random numbers, so that two evaluations differ by what was learned only.
        """
        start = torch.tensor(prompt, device=self.device)
        generator = torch.Generator().manual_seed(self.config.seed)
        text = write_tokens(next_logits, start, count, temperature, generator, self.keep_sampling)
        return text[len(start) :].tolist()

    @property
    def global_batch(self) -> int:
        """Samples of an optimizer step, over the ranks that train in step."""
        return self._session.batch.global_

    def total(self, values: Sequence[float]) -> list[float]:
        """Sums over the ranks that train in step; all of them must call it, in the same order. Once `fit` runs."""
        return self._session.strategy.total(values)

    def alert(self, kind: str, title: str, cause: str, next_step: str) -> None:
        """Tells the person something that stops nothing, in window and metrics.

        Args:
            kind: One word for programs that read the metrics.
            title: A few words.
            cause: One sentence: what is odd, with the values concerned.
            next_step: One sentence: what can be done.
        """
        self._session.reporter.event("alert", kind=kind, title=title, cause=cause, next_step=next_step)

    @property
    def data_dir(self) -> Path:
        """The folder that `prepare` fills."""
        return self._session.data_dir

    @property
    def samples(self) -> int:
        """Training samples, once prepared."""
        return self._session.data.samples

    @property
    def info(self) -> Mapping[str, Any]:
        """What `PreparedData.info` said, on every rank."""
        return self._session.data.info

    def dataset_files(self) -> list[Path]:
        """The files that are trained on, in their order; those of a validation or test split are none of them.

        Raises:
            DatasetError: There are none, or they cannot be read.
        """
        if is_hub(self.config.dataset_file):
            raise DatasetError(
                f"This recipe reads its own file format, but {self.config.dataset_file} is not a file.",
                "Name a file or a folder.",
            )
        listing = list_dataset(self.config.dataset_file, self.config.data_files)
        return [path for path, _ in listing.training_files]

    def texts(self, limit_bytes: int) -> Iterator[str]:
        """The start of the dataset's text, whatever its format, for learning a tokenizer; see `TextSource`.

        Raises:
            DatasetError, ConfigError, PreflightError: See `workers.data.reading.corpus.open_corpus`.
        """
        return texts(self._open_corpus(), limit_bytes)

    def tokenize(self, tokenizer: TokenizerSpec, *, validation_split: bool = False) -> TokenData:
        """The whole dataset as tokens, whatever its format; made once, kept for all runs. For `prepare`, on rank 0.

        With `validation_split` the tokens of a validation split, if the dataset has one, stand behind those that are
        trained on; then `TokenData.cut` says where they begin. Without it they are left out.

        Put `TokenData.info` into `PreparedData.info`, and every rank can `open_tokens`.

        Raises:
            DatasetError: It cannot be read, holds no text, or more bad rows than the option `max_bad_rows` allows.
            ConfigError: The option `text_column` names a column that is not there.
            PreflightError: The disk is full, or a package is missing.
        """
        limit = BadRowLimit.parse(self.options.get(MAX_BAD_ROWS))
        corpus = self._open_corpus()
        corpus = corpus if validation_split else corpus.without_validation()
        data = tokenise(corpus, tokenizer, token_cache_dir(), self.say)
        self._report(corpus, data)
        limit.check(data.counts)
        return data

    def open_tokens(self) -> np.memmap[Any, Any]:
        """What `tokenize` made, on any rank, once prepared: ids, shape (tokens,), mapped into memory."""
        return open_tokens(Path(self.info[_TOKEN_CACHE]), self.info["vocab_size"])

    def open_ends(self) -> np.memmap[Any, Any]:
        """Where each document of `tokenize`'s ends, on any rank, once prepared: shape (documents,), mapped into memory.

        A document's end is the number of tokens up to it, what stands between two documents included.
        """
        return open_ends(Path(self.info[_TOKEN_CACHE]))

    def say(self, text: str) -> None:
        """Tells the person what takes long while data is prepared ("downloading 1.2 GB"). For `prepare`, on rank 0.

        Not every call reaches the host: not too often, and often enough to be known to be at work.
        """
        waited_s = time.monotonic() - self._said_at
        if waited_s > (_SAY_EVERY_S if text != self._said else _SAY_AGAIN_S):
            self._said, self._said_at = text, time.monotonic()
            self._session.phase("preparing data", text)

    def prepare_windows(
        self, make_tokenizer: Callable[[TextSource, Path], TokenizerSpec], depends_on: Mapping[str, Any]
    ) -> WindowBatches:
        """`prepare`, `tokenize`, `cut_windows` and `open_tokens` in one: the dataset as windows of `seq_len` tokens.

        Args:
            make_tokenizer: Which tokens: the recipe's function of that name.
            depends_on: The settings that the tokens depend on, and `val_fraction`, the share held out at the end.

        Raises:
            DatasetError: There is not enough text; and as `tokenize`.
        """

        def build(folder: Path) -> PreparedData:
            data = self.tokenize(make_tokenizer(self, folder), validation_split=True)
            cut = data.cut(self.config.seq_len, depends_on["val_fraction"])
            return PreparedData(cut.samples, cut.val_samples, {**data.info, "train_tokens": cut.train_tokens})

        info = self.prepare(build, depends_on)
        return WindowBatches(self.open_tokens(), self.config.seq_len, self.samples, info["train_tokens"])

    def _open_corpus(self) -> Corpus:
        if self._corpus is None:
            self._corpus = open_corpus(self.config.dataset_file, self.options, self.say, self.config.data_files)
        return self._corpus

    def _report(self, corpus: Corpus, data: TokenData) -> None:
        """One `data` line in the metrics, and an alert when rows are bad."""
        event = self._session.reporter.event
        event(
            "data",
            text=corpus.report(data.counts, data.tokens),
            form=corpus.form,
            shape=corpus.shape.text or "texts",
            text_column=corpus.column or None,
            text_column_guessed=corpus.guessed,
            **data.facts,
        )
        if data.counts.bad_rows:
            event(
                "alert",
                kind="bad_rows",
                title="Some rows of the dataset are bad",
                cause=f"{data.counts.summary}. The first: {'; '.join(data.counts.examples)}.",
                next_step="They are left out. The setting Bad rows allowed limits them. "
                "Lines of plain text that are not UTF-8 are kept unchanged.",
            )

    def prepare(
        self, build: Callable[[Path], PreparedData], depends_on: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """Has rank 0 fill `data_dir` once, and every rank wait for it; a resumed run finds it filled.

        Args:
            build: Fills the folder it is given.
            depends_on: The settings that the outcome depends on; left out, all of the recipe's options.

        Returns:
            `info`.
        """
        self._session.phase("preparing data")
        if self.rank == 0:
            settings = dict(self.options if depends_on is None else depends_on)
            key = {
                "recipe": self.config.recipe,
                "dataset_file": self.config.dataset_file,
                "seq_len": self.config.seq_len,
                **({} if self.config.data_files == ALL_FILES else {"data_files": self.config.data_files}),
                "settings": settings | {name: self.options[name] for name in OPTIONS if name in self.options},
            }
            self._session.reporter.send(prepare(self.data_dir, build, key, _tokens_are_there))
            give_back_spare_memory()
        self._session.data = self._session.inbox.wait_for_data(_DATA_TIMEOUT_S)
        return self.info

    def fit(self, task: Task) -> None:
        """Trains until the work is done or the run is stopped; resumes where the newest checkpoint stands."""
        self._session.phase("rendezvous")
        self._session.strategy.setup()
        Trainer(self._session, task).fit()


class Measured(LossAndMetrics):
    """The older name of `LossAndMetrics`, whose metrics were called figures."""

    def __init__(self, loss: Tensor, figures: Mapping[str, Tensor] | None = None) -> None:
        super().__init__(loss, figures or {})


@dataclass(frozen=True, slots=True)
class Export:
    """What `export(given)` gets: weights to make a folder of, for programs that are not Rankdeck.

    Attributes:
        config: What was asked of the run, complete with the recipe's defaults.
        data_dir: The folder that `prepare` filled.
        weights: A safetensors file of whole weights, by the names of the model's `state_dict`.
        target: An empty folder; what is in it afterwards is the export.
        dtype: The numbers that are asked for, "fp32", "bf16" or "fp16"; "auto": the recipe chooses.
    """

    config: RunConfig
    data_dir: Path
    weights: Path
    target: Path
    dtype: str = "auto"

    @property
    def options(self) -> Mapping[str, Any]:
        """The recipe's own fields, as `recipe.toml` names them."""
        return self.config.options

    @property
    def info(self) -> Mapping[str, Any]:
        """What `PreparedData.info` said.

        Raises:
            DatasetError: The run's prepared data is gone.
        """
        try:
            info: Mapping[str, Any] = json.loads(read_utf8(self.data_dir / DATA_JSON))["info"]
        except (OSError, ValueError, KeyError) as error:
            raise DatasetError(
                f"The run's prepared data in {self.data_dir} cannot be read ({error}).",
                "Resume the run for one step to prepare its data again.",
            ) from error
        return info


def _tokens_are_there(info: Mapping[str, Any]) -> bool:
    """A cache may be emptied at any time; what lay in it is then made again."""
    return _TOKEN_CACHE not in info or is_whole(Path(info[_TOKEN_CACHE]))
