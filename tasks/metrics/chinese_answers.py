"""Exact match and F1 of CMRC 2018 (also used for DRCD) and DuReader-robust, in percent.

Both official scripts compute F1 over the longest common run of segments, which must be consecutive in both texts. They
differ in the characters that they ignore, and in how they segment text that is not Chinese.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING

from tasks.metrics.metric import Scores, percent, precision_recall_f1

if TYPE_CHECKING:
    from nltk.tokenize.destructive import NLTKWordTokenizer

# Both scripts list "……", two characters, which no single character equals: the ellipsis is kept.
CMRC_IGNORED = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
DUREADER_IGNORED = frozenset(":_`，。：？！()“”；’《》·、,「」（）－～『』|")

# CMRC's script takes the characters of Unicode 1.1 only; DuReader's takes all ideographs, and "=".
CMRC_SINGLE = re.compile("[\u4e00-\u9fa5]")
DUREADER_SINGLE = re.compile(
    "[=\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f]"
)

Answers = Mapping[str, Sequence[str]]
Texts = Mapping[str, str]
Segmenter = Callable[[str], list[str]]


def cmrc_normalize(text: str) -> str:
    """Return a text in lower case without outer white space and CMRC's ignored punctuation."""
    return _without(text.lower().strip(), CMRC_IGNORED)


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
    return _without(text.lower(), DUREADER_IGNORED)


def dureader_segments(text: str) -> list[str]:
    """Return Chinese characters and "=" one by one, and each other run, spaces included, as one segment."""
    return [run for run, _ in _runs(dureader_normalize(text), DUREADER_SINGLE)]


def common_run_f1(answer: list[str], prediction: list[str]) -> float:
    """Return F1 of the longest run of segments that is consecutive in both lists; 0.0 if there is none."""
    common = SequenceMatcher(None, answer, prediction, autojunk=False).find_longest_match().size
    return precision_recall_f1(common, len(prediction), len(answer))[2]


def cmrc2018(gold: Answers, predictions: Texts) -> Scores:
    """Return {"average", "f1", "em", "total", "skipped"} of CMRC 2018; `average` is the mean of f1 and em.

    The score of a question is the best one over its answers, of which it has at least one. A missing prediction counts
    as 0; `skipped` is their number.
    """
    scores = _score(gold, predictions, cmrc_normalize, cmrc_segments)
    return {"average": (scores["em"] + scores["f1"]) * 0.5} | scores


def dureader_robust(gold: Answers, predictions: Texts) -> Scores:
    """Return {"f1", "em", "total", "skipped"} of DuReader-robust, as `cmrc2018` describes them."""
    return _score(gold, predictions, dureader_normalize, dureader_segments)


def _score(gold: Answers, predictions: Texts, normalize: Callable[[str], str], segment: Segmenter) -> Scores:
    f1, em = [], []
    for key, answers in gold.items():
        if key in predictions:
            text, segments = normalize(predictions[key]), segment(predictions[key])
            f1.append(max(common_run_f1(segment(answer), segments) for answer in answers))
            em.append(float(any(normalize(answer) == text for answer in answers)))
    total = len(gold)
    return {"f1": percent(f1, total), "em": percent(em, total), "total": total, "skipped": total - len(f1)}


def _without(text: str, ignored: frozenset[str]) -> str:
    return "".join(char for char in text if char not in ignored)


def _runs(text: str, single: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """Yield each character that matches `single`, with True, and each run of other characters, with False."""
    for run in re.split(f"({single.pattern})", text):
        if run:
            yield run, single.fullmatch(run) is not None


@cache
def _word_tokenizer() -> NLTKWordTokenizer:
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return NLTKWordTokenizer()
