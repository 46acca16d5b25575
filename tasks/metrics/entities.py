"""Tag schemes, and entity F1 of tag sequences (conlleval: CoNLL-2003, MSRA-NER) and of labelled spans (CLUENER).

A tag is `O`, or a letter and a type. Schemes differ in the letters: IOB1, IOB2, IOE, and BIOES, also written as BMES,
BILOU or BMEWO. Files also differ in the form: B-PER or B_PER, PER-B or PER_B, or numbers. `TagReader` reads all of
these; the functions take tags such as B-PER, in any scheme.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from tasks.metrics.labels_and_scores import Scores, precision_recall_f1

OUTSIDE = "O"
# What the letters of all schemes mean: B the first token of an entity, I one inside, E the last one, S the only one.
LETTERS = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S", "W": "S"}
STARTS = frozenset("BS")
ENDS = frozenset("ES")
BEFORE = re.compile("(?P<letter>[BIMELSUW])[-_](?P<type>.+)")
AFTER = re.compile("(?P<type>.+)[-_](?P<letter>[BIMELSUW])")


class Entity(NamedTuple):
    """The tokens [start, end) and their type."""

    type: str
    start: int
    end: int


class TagReader:
    """Reads the tags of one file, in all of which the letter is before the type, or in all after it.

    The first row with entities shows which; if all its tags, such as B-I, can be read in both ways, the types do.
    """

    def __init__(self, types: Collection[str] | None, aliases: Mapping[str, str]) -> None:
        """`types` are the task's types of entities, if known; `aliases` give tags to numbers and other names."""
        self._types, self._aliases = set(types or ()), aliases
        self._form: re.Pattern[str] | None = None

    def read(self, tags: Sequence[str]) -> tuple[str, ...]:
        """Return tags with BIOES's letter before the type; raises ValueError that names the tag."""
        tags = [self._aliases.get(tag, tag) for tag in tags]
        inside = sorted(set(tags) - {OUTSIDE})
        form = self._form or _form_of(inside, self._types)
        known = {OUTSIDE: OUTSIDE} | {tag: "-".join(split_tag(tag, form)) for tag in inside}
        self._form = form if inside else self._form
        return tuple(known[tag] for tag in tags)


def _form_of(tags: Sequence[str], types: set[str]) -> re.Pattern[str]:
    """Return the form in which all tags can be read; of both, the one in which the types are known ones."""
    forms = [form for form in (BEFORE, AFTER) if all(map(form.fullmatch, tags))]
    if len(forms) == 2 and tags:
        forms = [form for form in forms if {split_tag(tag, form)[1] for tag in tags} <= types]
        if not forms:
            raise ValueError(f"the tag {tags[0]!r} can be read in two ways; list the types of entities under `labels`")
    return forms[0] if forms else BEFORE


@lru_cache(4096)
def split_tag(tag: str, form: re.Pattern[str] = BEFORE) -> tuple[str, str]:
    """Return the letter of a tag in BIOES's spelling, and the type of its entity; "O" and "" for `O`.

    Raises ValueError for another tag than `O` that does not have the form.
    """
    if tag == OUTSIDE:
        return OUTSIDE, ""
    if found := form.fullmatch(tag):
        return LETTERS[found["letter"]], found["type"]
    expected = "B-TYPE or I-TYPE" if form is BEFORE else "TYPE-B or TYPE-I"
    raise ValueError(f"the tag {tag!r} is neither O nor {expected}; name numbers and other tags in `label_aliases`")


def to_iob2(tags: Sequence[str]) -> tuple[str, ...]:
    """Return tags in the scheme IOB2 that mark the same entities as tags in IOB1, IOB2, BIOES or BMES.

    In IOB1 an entity begins with I-, unless it follows an entity of its own type. A type that differs from that of the
    token before always begins an entity, as in conlleval. Raises ValueError as `split_tag` does.
    """
    converted, open_type = [], ""
    for tag in tags:
        letter, entity_type = split_tag(tag)
        starts = letter in STARTS or entity_type != open_type
        converted.append(f"{'B' if starts else 'I'}-{entity_type}" if entity_type else OUTSIDE)
        open_type = "" if letter in ENDS else entity_type
    return tuple(converted)


def comparable(gold: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]) -> list[list[tuple[str, ...]]]:
    """Return gold and predicted tags whose tokens can be compared: in IOB2, or as they are if both are in one scheme.

    conlleval compares them as they are, also tags that break their scheme. Predictions in IOB2 without a break, such as
    those of a model, are compared in IOB2.
    """
    sides = [[tuple(tags) for tags in side] for side in (gold, predictions)]
    converted = [[to_iob2(tags) for tags in side] for side in sides]
    return sides if _scheme(gold) == _scheme(predictions) and sides[1] != converted[1] else converted


def _scheme(rows: Sequence[Sequence[str]]) -> tuple[bool, bool]:
    """Return whether tags mark ends of entities, and whether they mark all starts; IOB1 and IOE mark few or none."""
    tags = [pair for row in rows for pair in [(OUTSIDE, ""), *map(split_tag, row)]]
    marks_starts = any(letter in STARTS and of_type != before for (_, before), (letter, of_type) in pairwise(tags))
    return any(letter in ENDS for letter, _ in tags), marks_starts


def entities_of(tags: Sequence[str]) -> tuple[Entity, ...]:
    """Return the entities that tags mark, in order of their starts; `to_iob2` says where an entity begins.

    Raises ValueError as `split_tag` does.
    """
    entities: list[Entity] = []
    for index, tag in enumerate(to_iob2(tags)):
        prefix, entity_type = split_tag(tag)
        if prefix == "B":
            entities.append(Entity(entity_type, index, index + 1))
        elif entity_type:
            entities[-1] = entities[-1]._replace(end=index + 1)
    return tuple(entities)


def tags_of(entities: Sequence[Entity], num_tokens: int) -> tuple[str, ...]:
    """Return the IOB2 tags of entities. Of entities that overlap, the longest is marked, or the first if equally long.

    An entity inside another has no place in one row of tags; the outer one keeps more tokens right.
    """
    tags = [OUTSIDE] * num_tokens
    for entity in sorted(entities, key=lambda entity: (entity.start - entity.end, entity.start)):
        if all(tag == OUTSIDE for tag in tags[entity.start : entity.end]):
            inside = [f"I-{entity.type}"] * (entity.end - entity.start - 1)
            tags[entity.start : entity.end] = [f"B-{entity.type}", *inside]
    return tuple(tags)


def tag_set(entity_types: Sequence[str]) -> tuple[str, ...]:
    """Return all IOB2 tags: B- and I- of each type in the given order, and `O` last, as in upstream's label maps."""
    return (*(f"{prefix}-{entity_type}" for entity_type in entity_types for prefix in "BI"), OUTSIDE)


# CLUENER's own layout: type -> surface -> list of [start, end], in characters, the end inclusive.
SpanLabels = Mapping[str, Mapping[str, Sequence[Sequence[int]]]]


def conlleval(gold: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]) -> Scores:
    """Return conlleval's scores in percent, unrounded. An entity is right if its type and both ends are.

    Returns:
        precision, recall, f1 over all entities; token_accuracy, and non_o_accuracy over tokens whose gold tag is not O;
        tokens, gold_entities, predicted_entities, correct_entities; and for each type TYPE_precision, TYPE_recall,
        TYPE_f1, and TYPE_found, the number of predicted entities. A score whose denominator is zero is 0. tokens and
        the accuracies leave out sentence boundaries, as the original script in Perl does; a port of it in Python counts
        each boundary as one more token with a right tag.

    Entities that break the scheme of the tags are read as conlleval does (see entities_of). The accuracies compare tags
    of different schemes in IOB2 (see comparable).
    """
    counts = {side: Counter[str]() for side in ("gold", "predicted", "correct")}
    for tags, predicted_tags in zip(gold, predictions, strict=True):
        expected, found = set(entities_of(tags)), set(entities_of(predicted_tags))
        for side, spans in (("gold", expected), ("predicted", found), ("correct", expected & found)):
            counts[side].update(kind for kind, _, _ in spans)
    rows = zip(*comparable(gold, predictions), strict=True)
    pairs = [pair for tags, predicted_tags in rows for pair in zip(tags, predicted_tags, strict=True)]
    inside = [pair for pair in pairs if pair[0] != "O"]
    scores = _percent_scores("", *(counts[side].total() for side in ("correct", "predicted", "gold")))
    scores |= {"token_accuracy": _accuracy(pairs), "non_o_accuracy": _accuracy(inside), "tokens": len(pairs)}
    scores |= {f"{side}_entities": counts[side].total() for side in counts}
    for kind in sorted(counts["gold"] | counts["predicted"]):
        scores |= _percent_scores(f"{kind}_", *(counts[side][kind] for side in ("correct", "predicted", "gold")))
        scores[f"{kind}_found"] = counts["predicted"][kind]
    return scores


def cluener(gold: Sequence[SpanLabels], predictions: Sequence[SpanLabels]) -> Scores:
    """Return the scores of CLUENER, fractions. An element of `gold` and `predictions` is the `label` of one text.

    Returns:
        f1: the official score (score.py of CLUENER2020): the mean over the types of TYPE_f1. There, an entity is a
        distinct surface of a text; its positions are not compared.

    The official mean covers CLUENER's ten types; this one the types in `gold` or `predictions`. The official script
    fails where a denominator is zero; here the score is 0.
    """
    surfaces = [
        {(index, kind, text) for index, labels in enumerate(side) for kind, texts in labels.items() for text in texts}
        for side in (gold, predictions)
    ]
    of_types = {}
    for kind in sorted({kind for side in surfaces for _, kind, _ in side}):
        expected, found = ({entity for entity in side if entity[1] == kind} for side in surfaces)
        of_types[f"{kind}_f1"] = precision_recall_f1(len(expected & found), len(found), len(expected))[2]
    return {"f1": sum(of_types.values()) / max(len(of_types), 1)} | of_types


def _percent_scores(prefix: str, correct: int, predicted: int, gold: int) -> Scores:
    scores = precision_recall_f1(correct, predicted, gold)
    return {f"{prefix}{name}": 100 * value for name, value in zip(("precision", "recall", "f1"), scores, strict=True)}


def _accuracy(pairs: Sequence[tuple[str, str]]) -> float:
    return 100 * sum(tag == predicted for tag, predicted in pairs) / len(pairs) if pairs else 0.0
