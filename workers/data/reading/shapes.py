"""The shape of rows (texts, conversations, questions and answers, …), found from their columns; the text column."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from core.data.formats import TEXT_COLUMN
from core.errors import ConfigError, DatasetError
from workers.data.reading.columns import NAMES, SURE_NAMES, VALUE, WHOLE, ColumnFacts, Columns

_LANGUAGES: Final = frozenset(
    (
        "ar", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "he", "hi", "hr", "hu",
        "it", "ja", "ko", "lt", "lv", "nl", "no", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "th", "tr", "uk",
        "ur", "vi", "zh", "english", "german", "french", "spanish", "italian", "russian", "chinese", "japanese",
        "korean", "portuguese", "dutch", "polish",
    )
)  # fmt: skip
_QUESTIONS: Final = ("question", "questions", "question_stem", "query", "q", "problem", "ask", "frage", "pregunta")
_ANSWERS: Final = (
    "answer", "answers", "a", "response", "responses", "reply", "solution", "output", "best_answer", "correct_answer",
    "final_answer", "choices", "options", "antwort", "respuesta", "label_text", "completion", "sql", "query",
)  # fmt: skip
_INSTRUCTIONS: Final = ("instruction", "instructions", "prompt", "task", "human_prompt", "user_prompt")
_RESPONSES: Final = (
    "output", "outputs", "response", "responses", "completion", "answer", "target", "generation", "result", "reply",
    "assistant", "model_response", "solution", "canonical_solution",
)  # fmt: skip
_INPUTS: Final = ("input", "inputs", "source", "src", "user", "human", "context", "source_text", "input_text", "x")
_OUTPUTS: Final = (
    "output", "outputs", "target", "targets", "tgt", "response", "assistant", "bot", "gpt", "reply", "target_text",
    "output_text", "y", "completion", "ai",
)  # fmt: skip
_LONG_TEXTS: Final = ("document", "article", "dialogue", "dialog", "passage", "report", "source", "maintext", "content")
_SUMMARIES: Final = ("summary", "highlights", "tldr", "tl_dr", "summaries", "abstract")
_SENTENCES: Final = (
    ("premise", "hypothesis"), ("sentence1", "sentence2"), ("sentence_1", "sentence_2"), ("sentence_a", "sentence_b"),
    ("sent1", "sent2"), ("text1", "text2"), ("text_a", "text_b"), ("anchor", "positive"), ("query", "positive"),
    ("question1", "question2"), ("query", "passage"), ("query", "document"), ("goal", "sol1"),
    ("sentence", "option1"),
)  # fmt: skip
_PREFERENCES: Final = (
    ("chosen", "rejected"), ("preferred_output", "non_preferred_output"), ("response_a", "response_b"),
    ("response_0", "response_1"), ("response_1", "response_2"), ("answer_a", "answer_b"), ("response_j", "response_k"),
    ("output_1", "output_2"), ("winner", "loser"), ("accepted", "rejected"), ("good", "bad"), ("better", "worse"),
    ("chosen_response", "rejected_response"), ("answer_0", "answer_1"), ("human_ref_a", "human_ref_b"),
)  # fmt: skip
_CONVERSATIONS: Final = ("conversation", "conversations", "dialog", "dialogs", "dialogue", "turns", "messages", "chat")
_SHORT_LENGTH: Final = 3.0
_ROLES: Final = frozenset(
    map(hash, ("user", "assistant", "system", "human", "gpt", "bot", "prompter", "model", "tool", "ai", "agent"))
)
# How much less likely a value within an object is the text.
_NESTED: Final = 2.0
_JOIN: Final = "Write each pair as one text in a column named text, or choose one column to train on it alone."
_AS_ONE: Final = (
    "Write each of them as one text in a column named text. To train on the files as they stand, with all names and "
    "brackets, choose * as the text column."
)


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of rows.

    Attributes:
        text: For people: "questions and answers"; empty: plain texts.
        columns: The columns that show it.
        next_step: Advice where no recipe trains them as they are; empty: they are trained.
        option: The flag for it.
    """

    text: str = ""
    columns: tuple[str, ...] = ()
    next_step: str = ""
    option: str = ""


TEXTS: Final = Shape()


@dataclass(frozen=True, slots=True)
class Choice:
    """The text column, the rows' shape, and a remark for the user."""

    column: str
    shape: Shape = TEXTS
    remark: str = ""


class _Table:
    """Columns by their names in lower case, with underscores."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._names = {
            re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or name: name
            for name in reversed(columns.names)
            if columns.facts[name].rows
        }

    def facts(self, name: str) -> ColumnFacts:
        return self.columns.facts[self._names[name]]

    def of(self, *kinds: str) -> list[str]:
        """The columns with mostly these kinds of values."""
        return [name for name in self._names.values() if self.columns.facts[name].kind in kinds]

    def has(self, name: str, *, numbers: bool = False) -> bool:
        """Whether there is such a column; one of numbers only if they are asked for."""
        return name in self._names and (numbers or self.facts(name).kind != "number")

    def first(self, names: Collection[str], but: str = "", *, numbers: bool = False) -> str:
        """The first of these names that is there; empty for none."""
        return next((name for name in names if name != but and self.has(name, numbers=numbers)), "")

    def shape(self, text: str, *names: str, next_step: str = _JOIN, option: str = "") -> Shape:
        """A shape that no recipe trains."""
        there = tuple(self._names.get(name, name) for name in names if name)
        return Shape(text, there, next_step, option or f"--set {TEXT_COLUMN}=NAME")


def find_shape(columns: Columns) -> Shape:
    table = _Table(columns)
    for recognise in _RECOGNISED:
        shape = recognise(table)
        if shape is not None:
            return shape
    return TEXTS


def _preferences(table: _Table) -> Shape | None:
    for better, worse in _PREFERENCES:
        if table.has(better) and table.has(worse):
            return table.shape("preferences", table.first(("prompt", "question", "input")), better, worse)
    names = table.columns.names
    if {"prompt", "completion", "label"} <= set(names) and table.facts("label").kind == "number":
        return table.shape("prompts with rated completions", "prompt", "completion", "label")
    return None


def _conversations(table: _Table) -> Shape | None:
    lists = (name for name in _CONVERSATIONS if table.has(name) and table.facts(name).kind in ("texts", "objects"))
    found = table.of("conversation") or list(lists)
    if table.has("mapping") and table.facts("mapping").kind == "object":
        found = ["mapping"]
    facts = table.columns.facts
    if not found and not any(facts[name].score(name) > 0 for name in table.columns.names):
        found = [name for name in facts if facts[name].kind == "conversation"]
    if not found:
        return None
    option = f"--set {TEXT_COLUMN}={WHOLE}"
    return table.shape("conversations", *found, next_step=_AS_ONE, option=option)


def _messages(table: _Table) -> Shape | None:
    """Conversations with a message in each row."""
    speaker = table.first(("role", "from", "speaker"))
    message = table.first(("content", "value", "message", "text"))
    if not speaker or not message or not table.facts(speaker).distinct <= _ROLES:
        return None
    option = f"--set {TEXT_COLUMN}={message}"
    return table.shape("messages of conversations", speaker, message, next_step=_AS_ONE, option=option)


def _nested_questions(table: _Table) -> Shape | None:
    name = table.first(("paragraphs", "qas", "qa_pairs"))
    if not name or table.facts(name).kind != "objects":
        return None
    option = f"--set {TEXT_COLUMN}={WHOLE}"
    return table.shape("questions and answers", name, next_step=_AS_ONE, option=option)


def _questions(table: _Table) -> Shape | None:
    question = table.first(_QUESTIONS)
    answer = table.first(_ANSWERS, question, numbers=True)
    if question and answer:
        return table.shape("questions and answers", table.first(("context", "passage")), question, answer)
    return None


def _whole_text(table: _Table) -> Shape | None:
    if not table.has("text") or not table.facts("text").is_text:
        return None
    has_code = table.has("code") and table.facts("code").is_prose
    return table.shape("texts with code", "text", "code") if has_code else TEXTS


def _instructions(table: _Table) -> Shape | None:
    first = table.first(_INSTRUCTIONS)
    second = table.first(_RESPONSES, first, numbers=True)
    if not first or not second:
        return None
    what = "prompts with completions" if first == "prompt" else "instructions with responses"
    return table.shape(what, first, table.first(("input", "context")), second)


def _prompts(table: _Table) -> Shape | None:
    """Questions or prompts beside texts of any name that are about as long, or longer; answers in objects and lists."""
    first, answers = table.first((*_QUESTIONS, *_INSTRUCTIONS)), table.first(("answers", "choices", "options"))
    if any(name and table.facts(name).kind in ("object", "objects", "texts") for name in (first, answers)):
        return table.shape("questions and answers", first, answers)
    if not first or not table.facts(first).is_prose:
        return None
    own, facts = table.facts(first), table.columns.facts
    others = (name for name in likely_columns(table.columns) if name in table.columns.top and facts[name] is not own)
    second = next((name for name in others if 2 * facts[name].mean_chars > own.mean_chars), "")
    return table.shape("questions or prompts with other texts", first, second) if second else None


def _pairs(table: _Table) -> Shape | None:
    translation = next((name for name in table.of("object") if "translation" in name.lower()), "")
    if translation:
        return table.shape("translations", translation)
    fields = {name: re.split(r"[_-]", name.lower()) for name in table.of("text")}
    languages = [name for name, ends in fields.items() if not _LANGUAGES.isdisjoint((ends[0], ends[-1]))]
    if len(languages) >= 2:
        return table.shape("translations", *languages)
    first = table.first(_LONG_TEXTS)
    second = table.first(_SUMMARIES, first)
    if first and second and (second != "abstract" or first == "article") and first != "content":
        return table.shape("texts with summaries", first, second)
    first = table.first(_INPUTS)
    second = table.first(_OUTPUTS, first)
    if first and second and (table.facts(first).is_prose or table.facts(second).is_prose):
        return table.shape("inputs with outputs", first, second)
    for one, other in _SENTENCES:
        if table.has(one) and table.has(other):
            return table.shape("pairs of texts", one, other)
    return None


def _token_ids(table: _Table) -> Shape | None:
    found = next(
        (name for name in table.of("numbers") if name.lower() in ("input_ids", "tokens", "ids", "token_ids")), ""
    )
    if not found or any(table.columns.facts[name].is_prose for name in table.columns.names):
        return None
    return table.shape("token ids", found, next_step="Choose the data from which they were made, as text.")


def _lists(table: _Table) -> Shape | None:
    """Texts or words in lists, unless a column that is named as text holds text."""
    for name in table.of("texts"):
        usual = name.lower() in (*NAMES, "tokens", "words", "sentences", "paragraphs", "texts", "lines")
        sure = any(
            other.lower() in SURE_NAMES and table.columns.facts[other].score(other) > 0 for other in table.columns.names
        )
        if usual and not sure:
            return table.shape(
                "lists of texts", name, option=f"--set {TEXT_COLUMN}={name}",
                next_step="Choose that column to train on the lists, each joined to a text with one item a line.",
            )  # fmt: skip
    return None


# The surest first. A column `text` beside a conversation is the conversation as text.
_RECOGNISED: Final[tuple[Callable[[_Table], Shape | None], ...]] = (
    _preferences, _messages, _nested_questions, _questions, _whole_text, _conversations, _instructions, _pairs,
    _prompts, _token_ids, _lists,
)  # fmt: skip


def choose_column(columns: Columns, wanted: str, where: str) -> Choice:
    """The text column, `wanted` if a person named one, else guessed.

    Raises:
        ConfigError: The named column is not there, or holds no text.
        DatasetError: Nothing looks like text, several columns do, or the rows are of a shape that no recipe trains.
    """
    shape = find_shape(columns)
    if wanted:
        return _wanted(columns, wanted, shape)
    if shape.next_step:
        named = _listed(shape.columns)
        raise DatasetError(
            f"{where} holds {shape.text} ({named}). Recipes train on plain texts, and one column alone would be "
            "another text than the one you have.",
            shape.next_step,
            option=shape.option,
            title=f"The rows are {shape.text}",
        )
    return _guessed(columns, where)


def _wanted(columns: Columns, wanted: str, shape: Shape) -> Choice:
    names = ", ".join(columns.names) or "none"
    if columns.names and not columns.has(wanted):
        raise ConfigError(
            TEXT_COLUMN, f"No row that was looked at has a column {wanted!r}. The columns are: {names}.",
            f"Choose one of them, or {WHOLE} for the whole text of the files.",
        )  # fmt: skip
    kind = columns.facts[wanted].kind if wanted in columns.facts else ""
    what = {
        "conversation": "conversations",
        "objects": "lists of objects",
        "object": "objects",
        "numbers": "lists of numbers",
    }
    inside = [name for name in columns.facts if name.startswith(f"{wanted}.")] if kind == "object" else []
    if kind in what:
        raise ConfigError(
            TEXT_COLUMN, f"The column {wanted!r} holds {what[kind]}, not text.",
            f"Choose one of {', '.join(inside[:10])}." if inside else f"Choose another one of: {names}.",
        )  # fmt: skip
    return Choice(wanted, shape)


def likely_columns(columns: Columns) -> list[str]:
    """The columns that look like text, the likeliest first; the bare texts of an array are one in any case."""
    scores = {name: facts.score(name) for name, facts in columns.facts.items()}
    names = [name for name in columns.facts if scores[name] > 0]
    if not names and columns.names == (VALUE,) and columns.facts[VALUE].is_text:
        return [VALUE]
    return sorted(names, key=lambda name: scores[name] - (0.0 if name in columns.top else _NESTED), reverse=True)


def _guessed(columns: Columns, where: str) -> Choice:
    names = likely_columns(columns)
    if not names:
        described = "; ".join(_described(name, columns.facts[name]) for name in columns.names[:12]) or "none"
        raise DatasetError(
            f"No column looks like text. The columns are: {described}.",
            f"Choose the text column, or {WHOLE} for the whole text of the files.",
            option=f"--set {TEXT_COLUMN}=NAME",
            title="Which column is the text?",
        )
    best = names[0]
    rival = next(_rivals(columns, best, names[1:]), "")
    if rival:
        raise DatasetError(
            f"Several columns of {where} look like text: {_listed((best, rival))}.",
            "Choose one of them, or put them together in one column named text.",
            option=f"--set {TEXT_COLUMN}=NAME",
            title="Which column is the text?",
        )
    length = columns.facts[best].mean_length
    short = f"The texts in column {best} are short: {length:.1f} words on average."
    return Choice(best, TEXTS, short if length < _SHORT_LENGTH else "")


def _rivals(columns: Columns, best: str, others: Collection[str]) -> Iterator[str]:
    """Columns that may just as well be the text: another of the same name, or as much prose under no better name."""
    facts = columns.facts[best]
    plain = re.sub(r" \(\d+\)$", "", best)
    is_named = plain.rpartition(".")[2].lower() in SURE_NAMES
    if not is_named:
        yield from (name for name in columns.names if columns.facts[name].kind in ("texts", "objects"))
    for name in others:
        if name.rpartition(".")[0] == best or name.startswith(f"{best}."):
            continue
        same_name = re.sub(r" \(\d+\)$", "", name) == plain
        if same_name or (not is_named and columns.facts[name].mean_chars * 4 > facts.mean_chars):
            yield name


def _described(name: str, facts: ColumnFacts) -> str:
    """A column and what it holds: "url (addresses, dates, numbers or ids)"."""
    what: Mapping[str, str] = {
        "": "empty", "opaque": "addresses, dates, numbers or ids", "number": "numbers", "texts": "lists of texts",
        "numbers": "lists of numbers", "objects": "lists of objects", "object": "objects",
        "conversation": "conversations", "text": f"texts of {facts.mean_length:.0f} words",
    }  # fmt: skip
    return f"{name} ({what.get(facts.kind, facts.kind)})"


def _listed(names: Collection[str]) -> str:
    return f"column{'' if len(names) == 1 else 's'} {', '.join(names)}"
