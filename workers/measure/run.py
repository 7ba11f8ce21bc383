"""A recipe's run without a host, on a part of its data, whose training is a measurement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from core.paths import token_cache_dir
from core.protocol.messages import DataReady
from workers.data.reading.corpus import open_corpus
from workers.data.tokens.token_cache import TokenData, found_tokens, tokenise
from workers.data.tokens.tokenizer_spec import TokenizerSpec
from workers.recipe_api.run import Run
from workers.training.session import Session
from workers.training.task import Task
from workers.training.training_mode import begin_training

# Of a dataset without cached tokens so much text is tokenised; its content does not matter.
SAMPLE_BYTES: Final = 1 << 20


class NoHost:
    """A session's reporter and inbox without a host; it hands back the prepared data."""

    def __init__(self) -> None:
        self._data = DataReady(0, 0)

    def send(self, message: object) -> None:
        if isinstance(message, DataReady):
            self._data = message

    def event(self, name: str, /, **fields: object) -> None:
        del name, fields

    def wait_for_data(self, timeout_s: float) -> DataReady:
        del timeout_s
        return self._data


class MeasuredRun(Run):
    """A recipe's run on a part of its data, which each rank prepares by itself; `fit` hands its task to `measure`.

    Args:
        session: Without a host.
        measure: Gets the task.
        rank: The rank that the recipe sees once its data is there; until then it sees the first one.
    """

    def __init__(self, session: Session, measure: Callable[[Task], None], rank: int = 0) -> None:
        super().__init__(session)
        self._measure, self._number, self._is_prepared = measure, rank, False

    @property
    def rank(self) -> int:
        return self._number if self._is_prepared else 0

    def prepare(self, *args: Any, **kwargs: Any) -> Any:
        info = super().prepare(*args, **kwargs)
        self._is_prepared = True
        return info

    def tokenize(self, tokenizer: TokenizerSpec, *, validation_split: bool = False) -> TokenData:
        """Return the cached tokens of the dataset, or those of its first text."""
        corpus = self._open_corpus()
        corpus = corpus if validation_split else corpus.without_validation()
        found = found_tokens(corpus, tokenizer, token_cache_dir())
        if found is not None:
            return found
        wanted = max(SAMPLE_BYTES, 64 * self.config.seq_len)
        text = "".join(self.texts(wanted)) or "\n"
        sample = self._session.run_dir / "sample.txt"
        sample.write_text(text * -(-wanted // len(text)), encoding="utf-8", newline="\n")
        return tokenise(open_corpus(str(sample), {}), tokenizer, self._session.run_dir / "tokens")

    def fit(self, task: Task) -> None:
        """Measure instead of training; as in a run, a model from `from_pretrained` is put into training mode."""
        begin_training(task.model)
        self._measure(task)
