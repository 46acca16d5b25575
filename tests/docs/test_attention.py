"""Which tokens are n-grams, and the attention inside them, against plain loops and hand-made numbers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ernie_gram.inference.texts import TextEncoder
from reader.corpus.boundaries import Int64s
from reader.corpus.units import UnitCutter
from reader.lexicon.lexicon_file import Lexicon, LexiconInfo, NGrams
from reader.tokenization.vocabulary import SPECIAL_TOKENS
from reader.tokenization.wordpiece import WordPieceVocabulary
from tests.support.studies import study

WORDS = ("new", "york", "##er", "##shire", "in", "a", "the", "city", "of", "angels", ".", "北", "京", "大", "学")
VOCABULARY = WordPieceVocabulary([*SPECIAL_TOKENS, *WORDS])
TEXTS = TextEncoder(VOCABULARY, "char", 64)
MODEL = SimpleNamespace(texts=TEXTS)
STUDY = study("attention")
inside_attention, lexicon_spans, phrase_spans, pooled = (
    *(STUDY.inside_attention, STUDY.lexicon_spans),
    *(STUDY.phrase_spans, STUDY.pooled),
)


def lexicon(*ngrams: str, vocabulary: str = VOCABULARY.fingerprint) -> Lexicon:
    counts: Int64s = np.full(len(ngrams), 3)
    made = NGrams.from_texts([*ngrams], counts, counts.astype(np.float64))
    return Lexicon(made, LexiconInfo(vocabulary, "char", "", {}, {}, 8, 0, 1))


def slow_inside_attention(weights: np.ndarray, spans: list[tuple[int, int]]) -> tuple[float, float, int, int]:
    """Return what `inside_attention` does, for one head, pair by pair."""
    size = len(weights)
    ngram_of = {slot: number for number, (start, end) in enumerate(spans) for slot in range(start, end)}
    plain = [slot for slot in range(1, size - 1) if slot not in ngram_of]
    inside, expected, left_out = [], [], 0
    for query in ngram_of:
        for key in ngram_of:
            if query == key or ngram_of[query] != ngram_of[key]:
                continue
            others = [weights[i, j] for i in plain for j in plain if j - i == key - query]
            if others:
                inside.append(weights[query, key])
                expected.append(np.mean(others))
            else:
                left_out += 1
    return float(np.mean(inside)), float(np.mean(expected)), len(inside), left_out


@pytest.mark.parametrize("seed", range(4))
def test_inside_and_expected_attention_equal_a_loop_over_all_pairs(seed: int) -> None:
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.ones(14), (2, 3, 14))
    spans = [(2, 3), (4, 6), (9, 12 + seed % 2)]
    found = inside_attention(weights, spans)
    assert found.inside.shape == found.expected.shape == (2, 3)
    for i in np.ndindex(2, 3):
        expected = slow_inside_attention(weights[i], spans)
        assert (found.inside[i], found.expected[i], found.pairs, found.left_out) == pytest.approx(expected)
    assert np.isnan(inside_attention(weights, [(1, 13)]).inside).all()
    assert inside_attention(weights, []).pairs == 0


def test_phrases_are_found_wherever_they_occur_as_whole_words() -> None:
    text = "A New  York city in new york ."
    assert phrase_spans(MODEL, text, ["new york", "city"]) == [(2, 4), (4, 5), (6, 8)]
    assert phrase_spans(MODEL, "new yorker in yorkshire", ["new yorker"]) == [(1, 4)]
    assert phrase_spans(MODEL, text, ["in", "in"]) == [(5, 6)]
    assert phrase_spans(MODEL, text, []) == []
    assert phrase_spans(MODEL, "北京大学", ["北京", "京大学"]) == [(1, 3), (2, 5)]
    for absent in ("new york", "york", "city"):
        with pytest.raises(ValueError, match=absent):
            phrase_spans(MODEL, "the new yorker", [absent])
    # All unknown words have one ID.
    with pytest.raises(ValueError, match="€"):
        phrase_spans(MODEL, "the ☃ city", ["€"])


def test_ngrams_of_a_lexicon_are_found_as_in_a_corpus() -> None:
    ngrams = UnitCutter(VOCABULARY, lexicon("new york", "york city", "city of angels", "the new yorker"))
    # Three segments: "new york" and "city of angels" instead of "new", "york city", "of", "angels".
    assert lexicon_spans(MODEL, "in New York city of angels", ngrams) == [(2, 4), (4, 7)]
    assert lexicon_spans(MODEL, "the new yorker .\n\nin york city", ngrams) == [(1, 5), (7, 9)]
    assert lexicon_spans(MODEL, "a city", ngrams) == []
    text = "the new yorkshire city of angels in yorkshire"
    encoded = TEXTS.encode((text,))
    [span] = lexicon_spans(MODEL, text, ngrams)
    assert [TEXTS.vocabulary.tokens[i] for i in encoded.ids[slice(*span)]] == ["city", "of", "angels"]


def test_pooled_means_are_those_of_all_pairs() -> None:
    random = np.random.default_rng(2)
    spans = [[(1, 3)], [(2, 5), (7, 9)], [], [(1, 9)]]
    found = [inside_attention(random.dirichlet(np.ones(12), (3, 12)), each) for each in spans]
    total = pooled(found)
    assert (total.pairs, total.left_out) == (sum(each.pairs for each in found), sum(each.left_out for each in found))
    for i in range(2):
        expected = sum(each[i] * each.pairs for each in found if each.pairs) / total.pairs
        np.testing.assert_allclose(total[i], expected)
    nothing = pooled([found[2], STUDY.Inside(found[2].inside, found[2].expected, 0, 3)])
    assert (nothing.pairs, nothing.left_out) == (0, 3)
    assert np.isnan(nothing.inside).all()
