"""Entity F1 of tag sequences (conlleval: CoNLL-2003, MSRA-NER) and of labelled spans (CLUENER)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tasks.metrics.labels_and_scores import Scores, precision_recall_f1
from tasks.metrics.tag_schemes import comparable, entities_of

# CLUENER's own layout: type -> surface -> list of [start, end], in characters, the end inclusive.
SpanLabels = Mapping[str, Mapping[str, Sequence[Sequence[int]]]]
Entity = tuple[int | str, ...]


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
        span_precision, span_recall, span_f1: over all spans, of any type; type and both ends must be right.

    The official mean covers CLUENER's ten types; this one the types in `gold` or `predictions`. The official script
    fails where a denominator is zero; here the score is 0.
    """
    surfaces, spans = ([_entities(side, by_surface) for side in (gold, predictions)] for by_surface in (True, False))
    kinds = sorted({str(entity[1]) for side in surfaces for entity in side})
    of_types = {}
    for kind in kinds:
        sides = [{entity for entity in side if entity[1] == kind} for side in surfaces]
        of_types[f"{kind}_f1"] = _set_scores(*sides)[2]
    precision, recall, f1 = _set_scores(*spans)
    mean = sum(of_types.values()) / len(kinds) if kinds else 0.0
    overall = {"f1": mean, "span_precision": precision, "span_recall": recall, "span_f1": f1}
    # Shown first, but they also prevail: a type may be called span.
    return overall | of_types | overall


def _percent_scores(prefix: str, correct: int, predicted: int, gold: int) -> Scores:
    scores = precision_recall_f1(correct, predicted, gold)
    return {f"{prefix}{name}": 100 * value for name, value in zip(("precision", "recall", "f1"), scores, strict=True)}


def _accuracy(pairs: Sequence[tuple[str, str]]) -> float:
    return 100 * sum(tag == predicted for tag, predicted in pairs) / len(pairs) if pairs else 0.0


def _entities(texts: Sequence[SpanLabels], by_surface: bool) -> set[Entity]:
    """Return entities: (index of the text, type, surface), or (index, type, start, end)."""
    return {
        (index, kind, *entity)
        for index, labels in enumerate(texts)
        for kind, by_text in labels.items()
        for surface, positions in by_text.items()
        for entity in ([(surface,)] if by_surface else [tuple(position) for position in positions])
    }


def _set_scores(gold: set[Entity], predicted: set[Entity]) -> tuple[float, float, float]:
    return precision_recall_f1(len(gold & predicted), len(predicted), len(gold))
