"""Tokens with tags, and how a row of a file becomes an example of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from reader.tokenization.basic_tokenizer import split_run_with_spans
from reader.tokenization.given_texts import shown
from tasks.data.examples import CharSpan, Place, locate
from tasks.data.tag_schemes import Entity, entities_of, tags_of, to_iob2
from tasks.kinds.checked_values import Reading, check_label, id_of, text_of, texts_of
from tasks.layouts.clue import Cluener
from tasks.layouts.rows import Row, RowError


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
    """Return an example of tagging; raises RowError. Words are joined by spaces unless the language is Chinese."""
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
        entities = _entities(row.values["entities"], "".join(tokens), reading.notes)
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
    spans = (span for run in runs for span in split_run_with_spans(run[0], lowercase=False, offset=run.start()))
    return tuple(text[span.starts[0] : span.ends[-1]] for span in spans)


def _tokens(value: Any) -> tuple[str, ...]:
    """Return tokens; a token may be a space, because characters are tokens in Chinese, but it may not be empty."""
    tokens = texts_of(value, "tokens", may_be_empty=True)
    if "" in tokens:
        raise RowError(f"tokens[{tokens.index('')}] is empty")
    text_of("".join(tokens), "the text")
    return tokens


def _tags(value: Any, num_tokens: int, reading: Reading) -> tuple[str, ...]:
    """Return tags with the letter before the type; JSON may have numbers."""
    are_numbers = isinstance(value, list) and all(type(tag) is int for tag in value)
    tags = texts_of(list(map(str, value)) if are_numbers else value, "tags")
    if len(tags) != num_tokens:
        raise RowError(f"{num_tokens} tokens but {len(tags)} tags")
    try:
        return reading.tags.read(tags)
    except ValueError as error:
        raise RowError(str(error)) from error


def _entities(value: Any, text: str, notes: Counter[str]) -> tuple[Entity, ...]:
    """Return entities by start. Where the text is not the surface of the entity, the nearest occurrence is taken."""
    entities = []
    for entity_type, start, end, surface in value:
        found = locate(text_of(surface, "the text of an entity"), text, start)
        if found is None:
            raise RowError(f"the entity {shown(surface)} is not in the text")
        if (found, found + len(surface)) != (start, end):
            notes["entities at another position than given"] += 1
        entities.append(Entity(entity_type, found, found + len(surface)))
    return tuple(sorted(entities, key=lambda entity: (entity.start, entity.end, entity.type)))
