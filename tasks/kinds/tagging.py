"""Tagging: words or characters -> a tag for each of them.

The first token of a word carries its tag. A sentence that is longer than an input is read in windows; each word is
trained and predicted in the window in which its first token has the most context.

Shape letters: S samples, which are windows; W words of all examples, M of a batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from reader.batches.fields import SLOTS, Field
from reader.errors import quoted
from reader.system.arrays import Float32s, Int64s, offsets_of
from reader.tokenization.basic_tokenizer import split_run_with_spans
from tasks.kinds.base import ANY_KIND, ENCODER_FIELDS, Kind, Predictions
from tasks.kinds.checked_values import Reading, check_label, id_of, text_of, texts_of
from tasks.kinds.features import Features, InputsBuilder, tokenize, windows_of
from tasks.layouts.benchmarks import Cluener, entities_in
from tasks.layouts.rows import ID, BadRow, CharSpan, Place, Role, Row, locate
from tasks.metrics.catalog import METRICS
from tasks.metrics.entities import Entity, entities_of, tag_set, tags_of, to_iob2

if TYPE_CHECKING:
    from reader.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class TaggingExample:
    """Tokens, each with a tag.

    Attributes:
        tokens: words (CoNLL) or characters (MSRA, CLUENER). A token may be a space, which a tokenizer drops.
        separator: what stands between two tokens in a text: " " for words, "" for characters.
        tags: one for each token, in the scheme IOB2: `B-TYPE` at the first token of an entity, `I-TYPE` inside, `O`.
        entities: all gold entities by start. They are those of `tags`, and those inside others (CLUENER has a few),
            which tags cannot express.
        given_text: the text that was split into the tokens; None if the file has tokens.
        given_tags: the tags in the scheme of the file, which scorers compare; None if it has entities.
    """

    id: str
    tokens: tuple[str, ...]
    separator: str
    tags: tuple[str, ...] | None
    entities: tuple[Entity, ...] | None
    place: Place
    given_text: str | None = None
    given_tags: tuple[str, ...] | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        return self.separator.join(self.tokens) if self.given_text is None else self.given_text

    def token_spans(self) -> list[CharSpan]:
        """Return the characters of each token in `text`."""
        text, spans, end = self.text, list[CharSpan](), 0
        for token in self.tokens:
            start = text.index(token, end)
            end = start + len(token)
            spans.append(CharSpan(start, end))
        return spans

    def placed(self, entities: Iterable[Entity]) -> Iterator[tuple[str, CharSpan, str]]:
        """Yield the type of each entity, its characters in `text`, and what they are."""
        text, spans = self.text, self.token_spans()
        for entity in entities:
            start, end = spans[entity.start].start, spans[entity.end - 1].end
            yield entity.type, CharSpan(start, end), text[start:end]


def read_example(row: Row, default_id: str, reading: Reading) -> TaggingExample:
    """Return an example of tagging; raises BadRow. Words are joined by spaces unless the language is Chinese."""
    separator = "" if reading.task.language == "zh" else " "
    given = text_of(row.values["text"], "text") if "text" in row.values else None
    if given is None:
        tokens = _tokens(row.values.get("tokens"))
    elif separator and not isinstance(reading.task.layout, Cluener) and "entities" not in row.values:
        tokens = _words(given)
    else:
        tokens, separator = tuple(given), ""
    row_id = id_of(row.values, default_id)
    if not reading.labelled:
        return TaggingExample(row_id, tokens, separator, None, None, row.place, given)
    given_tags = None
    if "entities" in row.values:
        entities = _entities(row.values["entities"], "".join(tokens), reading)
        tags = tags_of(entities, len(tokens))
        if entities_of(tags) != entities:
            reading.notes["texts with overlapping entities"] += 1
    else:
        given_tags = _tags(row.values.get("tags"), len(tokens), reading)
        tags, entities = to_iob2(given_tags), entities_of(given_tags)
    for entity in entities:
        check_label(entity.type, reading.task, "type of entity")
    return TaggingExample(row_id, tokens, separator, tags, entities, row.place, given_tags=given_tags)


def _words(text: str) -> tuple[str, ...]:
    """Return the words and the punctuation marks of a text, as tokenizers separate them; at least one."""
    runs = re.finditer(r"\S+", text)
    words = (word for run in runs for word in split_run_with_spans(run[0], lowercase=False, offset=run.start()))
    return tuple(text[starts[0] : ends[-1]] for _, starts, ends in words)


def _tokens(value: Any) -> tuple[str, ...]:
    """Return tokens; a token may be a space, because characters are tokens in Chinese, but it may not be empty."""
    tokens = texts_of(value, "tokens", may_be_empty=True)
    if "" in tokens:
        raise BadRow(f"tokens[{tokens.index('')}] is empty")
    text_of("".join(tokens), "the text")
    return tokens


def _tags(value: Any, num_tokens: int, reading: Reading) -> tuple[str, ...]:
    """Return tags with the letter before the type; JSON may have numbers."""
    are_numbers = isinstance(value, list) and all(type(tag) is int for tag in value)
    tags = texts_of(list(map(str, value)) if are_numbers else value, "tags")
    if len(tags) != num_tokens:
        raise BadRow(f"{num_tokens} tokens but {len(tags)} tags")
    try:
        return reading.tags.read(tags)
    except ValueError as error:
        raise BadRow(str(error)) from error


def _entities(value: Any, text: str, reading: Reading) -> tuple[Entity, ...]:
    """Return entities by start. Where the text is not the surface of the entity, the nearest occurrence is taken."""
    entities = []
    for entity_type, start, end, surface in value:
        found = locate(text_of(surface, "the text of an entity"), text, start)
        if found is None:
            raise BadRow(f"the entity {quoted(surface)} is not in the text")
        if (found, found + len(surface)) != (start, end):
            reading.notes["entities at another position than given"] += 1
        entities.append(Entity(entity_type, found, found + len(surface)))
    return tuple(sorted(entities, key=lambda entity: (entity.start, entity.end, entity.type)))


# A sample is a window, and its units are the words that belong to it: those of all samples are the words in order. The
# field `slots` has the first token of each word.
TAGS = Field("tags", "M", "int64", "index of the gold tag in each predicted slot")


class Tagging(Kind[TaggingExample, Features]):
    """The scores of a word are logits over all IOB2 tags of the task's types of entities."""

    name = "tagging"
    roles = (Role("tokens", is_list=True), Role("tags", is_gold=True, is_list=True), ID)
    layouts = (*ANY_KIND, "conll", "cluener")
    task_fields = ("labels", "label_aliases")
    metrics = ("conlleval", "cluener")
    submission = "tag_columns"
    splits_texts = True
    head = "tasks.kinds.networks.SlotHead"
    output = "cls_seq_label_out"
    paddlenlp_class = "ErnieGramForTokenClassification"
    input_fields = (*ENCODER_FIELDS, SLOTS)
    training_fields = (*ENCODER_FIELDS, SLOTS, TAGS)
    read_example = staticmethod(read_example)

    @staticmethod
    def labels_of(example: TaggingExample) -> set[str]:
        """Return the types of the entities."""
        return {entity.type for entity in example.entities or ()}

    @property
    def classes(self) -> tuple[str, ...]:
        """All tags."""
        assert self.task.labels is not None
        return tag_set(self.task.labels)

    def encode(self, examples: Sequence[TaggingExample], tokenizer: Tokenizer, training: bool) -> Features:
        """Return the features. A word that the tokenizer drops, such as a space, is [UNK]."""
        table = tokenize(tokenizer.encode_words_batch, (example.tokens for example in examples), "word_ids")
        builder, room = InputsBuilder(tokenizer.vocabulary), self.settings.input.max_seq_len - 2
        example_of, slots, num_long = list[int](), list[Int64s](), 0
        for index in range(len(examples)):
            tokens = table[index]
            num_long += len(tokens) > room
            # Every word has a token.
            first_tokens = np.flatnonzero(np.diff(tokens.word_ids, prepend=-1))
            for window in windows_of(len(tokens), room, self.settings.input.doc_stride):
                own = first_tokens[slice(*np.searchsorted(first_tokens, (window.own_start, window.own_stop)))]
                # A window inside one long word may have no word of its own.
                if len(own):
                    builder.add([tokens.ids[window.start : window.start + window.length]])
                    example_of.append(index)
                    slots.append(own - window.start + 1)
        index_of, is_labelled = {tag: i for i, tag in enumerate(self.classes)}, all(each.tags for each in examples)
        tags = [index_of[tag] for example in examples for tag in example.tags or ()]
        return Features(
            inputs=builder.inputs(),
            input_offsets=np.arange(len(slots) + 1),
            unit_offsets=offsets_of(np.array(list(map(len, slots)), np.int64)),
            example_of=np.array(example_of, np.int64),
            gold={},
            counts={"examples longer than an input": num_long},
            slots=np.concatenate([np.zeros(0, np.int32), *slots]).astype(np.int32),
            unit_gold={TAGS.name: np.array(tags, np.int64)} if is_labelled else {},
        )

    def decode(self, scores: Float32s, features: Features, examples: Sequence[TaggingExample]) -> Predictions:
        """Return the tag with the highest score of each word, the first of equal ones.

        An I- that does not continue an entity of its type becomes a B-, as conlleval reads it.
        """
        best, tags = scores.argmax(1), self.classes
        ends = np.cumsum([len(example.tokens) for example in examples])
        rows = [to_iob2([tags[i] for i in row]) for row in np.split(best, ends[:-1])]
        pairs = list(zip(examples, rows, strict=True))
        answers = [self._answer(example, row, entities_of(row)) for example, row in pairs]
        return self.predictions(examples, answers, [{"tags": list(row)} for row in rows])

    def record(self, example: TaggingExample, answer: object, detail: Mapping[str, Any]) -> dict[str, Any]:
        """Return tokens; tags; and entities, each with type, text, and its characters start and end in the text."""
        tags = detail["tags"]
        entities = [
            {"type": entity_type, "text": surface, "start": span.start, "end": span.end}
            for entity_type, span, surface in example.placed(entities_of(tags))
        ]
        return {"tokens": list(example.tokens), "tags": list(tags), "entities": entities}

    def answer_of(self, value: Any, example: TaggingExample) -> object:
        """Return tags, or entities in CLUENER's layout if the metric takes spans."""
        if not isinstance(value, tuple):
            if METRICS[self.task.metric].kind == "tag_sequences":
                raise BadRow(f"has entities, but the metric {self.task.metric} takes tags")
            entities_in(value)
            return value
        return self._answer(example, value, entities_of(value))

    def gold_value(self, example: TaggingExample) -> object:
        """Return the gold tags; or, if the metric takes spans, all gold entities, including those inside others."""
        return self._answer(example, example.given_tags or example.tags or (), example.entities or ())

    def _answer(self, example: TaggingExample, tags: Sequence[str], entities: Sequence[Entity]) -> object:
        if METRICS[self.task.metric].kind == "tag_sequences":
            return list(tags)
        # In CLUENER's layout: type -> surface -> list of [first, last] character.
        labels: dict[str, dict[str, list[list[int]]]] = {}
        for entity_type, span, surface in example.placed(entities):
            labels.setdefault(entity_type, {}).setdefault(surface, []).append([span.start, span.end - 1])
        return labels
