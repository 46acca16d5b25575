"""Exact match and F1 of SQuAD 1.1 and 2.0, in percent, as evaluate-v1.1.py and evaluate-v2.0.py print them."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from reader.errors import InputError
from tasks.metrics.metric import Scores, percent, precision_recall_f1

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)

Answers = Mapping[str, Sequence[str]]
Texts = Mapping[str, str]


def normalize_answer(text: str) -> str:
    """Return a text in lower case, without ASCII punctuation and English articles, its words joined by one space."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact_match(answer: str, prediction: str) -> float:
    """Return 1.0 if both texts are equal after normalisation, otherwise 0.0."""
    return float(normalize_answer(answer) == normalize_answer(prediction))


def token_f1(answer: str, prediction: str) -> float:
    """Return F1 over the words of the normalised texts, each word counted as often as it occurs."""
    gold_words, words = normalize_answer(answer).split(), normalize_answer(prediction).split()
    return precision_recall_f1((Counter(gold_words) & Counter(words)).total(), len(words), len(gold_words))[2]


def token_f1_v2(answer: str, prediction: str) -> float:
    """Return F1 as `token_f1` does, but 1.0 if both texts have no word (SQuAD 2.0's definition)."""
    both_empty = not normalize_answer(answer) and not normalize_answer(prediction)
    return 1.0 if both_empty else token_f1(answer, prediction)


def squad_v1(gold: Answers, predictions: Texts) -> Scores:
    """Return {"exact_match", "f1", "total", "skipped"} of SQuAD 1.1.

    The score of a question is the best one over its answers, of which it has at least one. A missing prediction counts
    as 0; `skipped` is their number.
    """
    answered = {key: answers for key, answers in gold.items() if key in predictions}
    exact = (_best(exact_match, answers, predictions[key]) for key, answers in answered.items())
    f1 = (_best(token_f1, answers, predictions[key]) for key, answers in answered.items())
    total = len(gold)
    scores = {"exact_match": percent(exact, total), "f1": percent(f1, total)}
    return scores | {"total": total, "skipped": total - len(answered)}


def squad_v2(
    gold: Answers, predictions: Texts, na_prob: Mapping[str, float] | None = None, threshold: float = 1.0
) -> Scores:
    """Return the scores of SQuAD 2.0. A question without gold answers is unanswerable: the right text is "".

    Args:
        gold: ID -> accepted answers; empty for an unanswerable question.
        predictions: ID -> text; "" for "no answer".
        na_prob: ID -> probability, or any other score, that the question has no answer.
        threshold: a prediction with a higher `na_prob` is scored as "no answer".

    Returns:
        exact, f1, total; the same with the prefixes HasAns_ and NoAns_ where there are such questions. With `na_prob`
        also best_exact, best_f1 and the thresholds best_exact_thresh and best_f1_thresh that give them.

    Raises InputError for a missing prediction or a missing `na_prob`, where the official script ends with a KeyError.
    """
    _check_complete(gold, predictions, "prediction")
    if na_prob is not None:
        _check_complete(gold, na_prob, "probability of no answer")
    # An answer that consists of articles and punctuation counts as no answer in the scores, but not in has_answer.
    answers = {key: [text for text in texts if normalize_answer(text)] or [""] for key, texts in gold.items()}
    has_answer = {key: bool(texts) for key, texts in gold.items()}
    of_questions = {
        name: {key: _best(function, answers[key], predictions[key]) for key in gold}
        for name, function in (("exact", exact_match), ("f1", token_f1_v2))
    }

    def final(key: str, score: float) -> float:
        return float(not gold[key]) if na_prob is not None and na_prob[key] > threshold else score

    groups = {"": list(gold), "HasAns_": [k for k in gold if has_answer[k]], "NoAns_": [k for k in gold if not gold[k]]}
    scores: Scores = {}
    for prefix, keys in groups.items():
        if keys:
            for name, raw in of_questions.items():
                scores[prefix + name] = percent((final(key, raw[key]) for key in keys), len(keys))
            scores[prefix + "total"] = len(keys)
    if na_prob is not None:
        for name, raw in of_questions.items():
            best, best_threshold = best_threshold_of(raw, has_answer, predictions, na_prob)
            scores |= {f"best_{name}": best, f"best_{name}_thresh": best_threshold}
    return scores


def best_threshold_of(
    scores: Mapping[str, float], has_answer: Mapping[str, bool], predictions: Texts, na_prob: Mapping[str, float]
) -> tuple[float, float]:
    """Return the best score in percent over all thresholds, and the smallest threshold that gives it.

    The threshold is 0.0 if "no answer" for every question gives the best score.

    Questions are answered one after another, in ascending order of `na_prob`. As in the official script, a threshold
    may lie between questions of equal `na_prob`, whose order is then that of `na_prob`: the score is an upper bound.
    """
    current = best = float(sum(not value for value in has_answer.values()))
    threshold = 0.0
    for key in sorted((key for key in na_prob if key in scores), key=lambda key: na_prob[key]):
        if has_answer[key]:
            current += scores[key]
        elif predictions[key]:
            current -= 1
        if current > best:
            best, threshold = current, na_prob[key]
    return 100.0 * best / len(scores), threshold


def _best(score: Callable[[str, str], float], answers: Sequence[str], prediction: str) -> float:
    return max(score(answer, prediction) for answer in answers)


def _check_complete(gold: Answers, values: Mapping[str, object], what: str) -> None:
    missing = [key for key in gold if key not in values]
    if missing:
        raise InputError(f"question {missing[0]!r} has no {what} ({len(missing)} in all); SQuAD 2.0 needs one for each")
