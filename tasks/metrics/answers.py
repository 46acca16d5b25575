"""Exact match and F1 of answers to questions, in percent, as the official scripts print them.

They are those of SQuAD 1.1 and 2.0 (evaluate-v1.1.py, evaluate-v2.0.py), CMRC 2018 (also used for DRCD) and
DuReader-robust. The scripts differ in what they ignore, in how they segment a text, and in the segments that count as
common to two texts: for Chinese, those of the longest run that is consecutive in both.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from reader.errors import InputError
from tasks.metrics.labels_and_scores import Scores, precision_recall_f1

if TYPE_CHECKING:
    from nltk.tokenize.destructive import NLTKWordTokenizer

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)

# Both scripts list "……", two characters, which no single character equals: the ellipsis is kept.
CMRC_IGNORED = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
DUREADER_IGNORED = str.maketrans("", "", ":_`，。：？！()“”；’《》·、,「」（）－～『』|")

# CMRC's script takes the characters of Unicode 1.1 only; DuReader's takes all ideographs, and "=".
CMRC_SINGLE = re.compile("[\u4e00-\u9fa5]")
DUREADER_SINGLE = re.compile(
    "[=\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f]"
)

Answers = Mapping[str, Sequence[str]]
Texts = Mapping[str, str]


class Script(NamedTuple):
    """How an official script compares two texts.

    normalize: the text that an exact match compares; segments: the parts of a text; common: the number of parts that
    two texts have in common.
    """

    normalize: Callable[[str], str]
    segments: Callable[[str], list[str]]
    common: Callable[[list[str], list[str]], int]

    def scores(self, answers: Sequence[str], prediction: str) -> tuple[float, float]:
        """Return exact match and F1 of a question, each that of the best answer, as fractions."""
        text, parts = self.normalize(prediction), self.segments(prediction)
        exact = any(self.normalize(answer) == text for answer in answers)
        return float(exact), max(self._f1(self.segments(answer), parts) for answer in answers)

    def _f1(self, answer: list[str], prediction: list[str]) -> float:
        return precision_recall_f1(self.common(answer, prediction), len(prediction), len(answer))[2]


def normalize_answer(text: str) -> str:
    """Return a text in lower case, without ASCII punctuation and English articles, its words joined by one space."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def common_words(answer: list[str], prediction: list[str]) -> int:
    """Return the number of words that are in both texts, each counted as often as it occurs."""
    return (Counter(answer) & Counter(prediction)).total()


def cmrc_normalize(text: str) -> str:
    """Return a text in lower case without outer white space and CMRC's ignored punctuation."""
    return text.lower().strip().translate(CMRC_IGNORED)


def cmrc_segments(text: str) -> list[str]:
    """Return Chinese characters one by one, and the other text as NLTK's word tokenizer splits it.

    The official script first splits the other text into sentences with NLTK's Punkt model, which must be downloaded.
    The result differs only where a sentence ends inside a run without any Chinese character.
    """
    segments: list[str] = []
    for run, is_single in _runs(cmrc_normalize(text), CMRC_SINGLE):
        segments += [run] if is_single else _word_tokenizer().tokenize(run)
    return segments


def dureader_normalize(text: str) -> str:
    """Return a text in lower case without DuReader's ignored punctuation."""
    return text.lower().translate(DUREADER_IGNORED)


def dureader_segments(text: str) -> list[str]:
    """Return Chinese characters and "=" one by one, and each other run, spaces included, as one segment."""
    return [run for run, _ in _runs(dureader_normalize(text), DUREADER_SINGLE)]


def common_run(answer: list[str], prediction: list[str]) -> int:
    """Return the length of the longest run of segments that is consecutive in both lists."""
    return SequenceMatcher(None, answer, prediction, autojunk=False).find_longest_match().size


SQUAD = Script(normalize_answer, lambda text: normalize_answer(text).split(), common_words)
CMRC = Script(cmrc_normalize, cmrc_segments, common_run)
DUREADER = Script(dureader_normalize, dureader_segments, common_run)


def squad_v1(gold: Answers, predictions: Texts) -> Scores:
    """Return {"exact_match", "f1", "total", "skipped"} of SQuAD 1.1.

    The score of a question is the best one over its answers, of which it has at least one. A missing prediction counts
    as 0; `skipped` is their number.
    """
    exact, scores = _scores(SQUAD, gold, predictions)
    return {"exact_match": exact, **scores}


def cmrc2018(gold: Answers, predictions: Texts) -> Scores:
    """Return {"average", "f1", "em", "total", "skipped"} of CMRC 2018; `average` is the mean of f1 and em.

    Questions are scored as by `squad_v1`.
    """
    exact, scores = _scores(CMRC, gold, predictions)
    return {"average": (exact + scores["f1"]) * 0.5, "f1": scores["f1"], "em": exact, **scores}


def dureader_robust(gold: Answers, predictions: Texts) -> Scores:
    """Return {"f1", "em", "total", "skipped"} of DuReader-robust; questions are scored as by `squad_v1`."""
    exact, scores = _scores(DUREADER, gold, predictions)
    return {"f1": scores["f1"], "em": exact, **scores}


def _scores(script: Script, gold: Answers, predictions: Texts) -> tuple[float, Scores]:
    """Return the mean exact match; and {"f1", "total", "skipped"}."""
    each = [script.scores(answers, predictions[key]) for key, answers in gold.items() if key in predictions]
    exact, f1 = (_percent([scores[i] for scores in each], len(gold)) for i in range(2))
    return exact, {"f1": f1, "total": len(gold), "skipped": len(gold) - len(each)}


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
    of_questions: dict[str, dict[str, float]] = {"exact": {}, "f1": {}}
    for key, texts in gold.items():
        # An answer that consists of articles and punctuation counts as no answer in the scores, but not in the groups.
        answers = [text for text in texts if normalize_answer(text)] or [""]
        exact, f1 = SQUAD.scores(answers, predictions[key])
        # Two texts without a word are equal, and have an F1 of 1 here.
        of_questions["exact"][key], of_questions["f1"][key] = exact, max(exact, f1)

    def final(key: str, score: float) -> float:
        return float(not gold[key]) if na_prob is not None and na_prob[key] > threshold else score

    groups = {"": list(gold), "HasAns_": [k for k in gold if gold[k]], "NoAns_": [k for k in gold if not gold[k]]}
    scores: Scores = {}
    for prefix, keys in groups.items():
        if keys:
            for name, raw in of_questions.items():
                scores[prefix + name] = _percent([final(key, raw[key]) for key in keys], len(keys))
            scores[prefix + "total"] = len(keys)
    if na_prob is not None:
        for name, raw in of_questions.items():
            best, best_threshold = best_threshold_of(raw, gold, predictions, na_prob)
            scores |= {f"best_{name}": best, f"best_{name}_thresh": best_threshold}
    return scores


def best_threshold_of(
    scores: Mapping[str, float], gold: Answers, predictions: Texts, na_prob: Mapping[str, float]
) -> tuple[float, float]:
    """Return the best score in percent over all thresholds, and the smallest threshold that gives it.

    The threshold is 0.0 if "no answer" for every question gives the best score.

    Questions are answered one after another, in ascending order of `na_prob`. As in the official script, a threshold
    may lie between questions of equal `na_prob`, whose order is then that of `na_prob`: the score is an upper bound.
    """
    current = best = float(sum(not texts for texts in gold.values()))
    threshold = 0.0
    for key in sorted((key for key in na_prob if key in scores), key=lambda key: na_prob[key]):
        if gold[key]:
            current += scores[key]
        elif predictions[key]:
            current -= 1
        if current > best:
            best, threshold = current, na_prob[key]
    return 100.0 * best / len(scores), threshold


def _check_complete(gold: Answers, values: Mapping[str, object], what: str) -> None:
    missing = [key for key in gold if key not in values]
    if missing:
        raise InputError(f"question {missing[0]!r} has no {what} ({len(missing)} in all); SQuAD 2.0 needs one for each")


def _percent(values: Sequence[float], total: int) -> float:
    """Return 100 * sum / total, with the operations in the order of the official scripts: equal to the last bit."""
    return 100.0 * sum(values) / total


def _runs(text: str, single: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """Yield each character that matches `single`, with True, and each run of other characters, with False."""
    for run in re.split(f"({single.pattern})", text):
        if run:
            yield run, single.fullmatch(run) is not None


@cache
def _word_tokenizer() -> NLTKWordTokenizer:
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return NLTKWordTokenizer()
