"""A slow, plain tokenizer with spans, and checks of spans, for tests of reader/tokenization/tokenizer.py."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

from reader.corpus.units import UnitCutter
from reader.tokenization.basic_tokenizer import fold, is_dropped, is_han, segmenter
from reader.tokenization.sentencepiece import SentencePieceVocabulary
from reader.tokenization.tokenizer import WHITE_SPACE, Encoding
from reader.tokenization.vocabulary import Vocabulary

# A token of the reference: ID, start, end, word.
Token = tuple[int, int, int, int]


def greedy_pieces(word: str, vocabulary: Vocabulary) -> list[tuple[int, int, int]]:
    """WordPiece as the paper of BERT describes it: the longest token first, or [UNK] for the whole word."""
    if is_han(word[0]):
        return [(vocabulary.ids.get(c, vocabulary.unk), i, i + 1) for i, c in enumerate(word)]
    found, start = [], 0
    while start < len(word) <= 100:
        prefix = "##" if start else ""
        ends = [end for end in range(len(word), start, -1) if prefix + word[start:end] in vocabulary.ids]
        if not ends:
            break
        found.append((vocabulary.ids[prefix + word[start : ends[0]]], start, ends[0]))
        start = ends[0]
    return found if start == len(word) else [(vocabulary.unk, 0, len(word))]


def normalized_pieces(word: str, vocabulary: SentencePieceVocabulary) -> list[tuple[int, int, int]]:
    """SentencePiece with spans from cuts at which the normal form of a word is that of its two parts."""
    normalize = vocabulary._processor.normalize
    pieces = vocabulary._processor.encode(word, out_type=str)
    if not pieces:
        return [(vocabulary.unk, 0, len(word))]
    whole = normalize(word)[1:]
    cuts = [i for i in range(len(word) + 1) if normalize(word[:i])[1:] + normalize(word[i:])[1:] == whole]
    sizes = [len(normalize(word[:i])[1:]) for i in cuts]
    found, done = [], 0
    for token, piece in zip(vocabulary.encode(word), pieces, strict=True):
        size = len(piece) - (not found)  # the first piece begins with the mark of a word
        if not size:
            found.append((token, 0, 0))
            continue
        first = max(cut for cut, done_there in zip(cuts, sizes, strict=True) if done_there <= done)
        done += size
        found.append((token, first, min(cut for cut, there in zip(cuts, sizes, strict=True) if there >= done)))
    return found


def reference_words(text: str, lowercase: bool, cut_han: str) -> list[list[tuple[str, int]]]:
    """BERT's basic tokenizer in its own order, one character at a time; each character with its original position."""
    clean = [(" " if c in WHITE_SPACE else c, i) for i, c in enumerate(text) if c in WHITE_SPACE or not is_dropped(c)]
    if lowercase:
        lowered = "".join(c for c, _ in clean).lower()
        positions = [i for c, i in clean for _ in c.lower()]
        parts = [(d, i) for c, i in zip(lowered, positions, strict=True) for d in unicodedata.normalize("NFD", c)]
        clean = [(c, i) for c, i in parts if unicodedata.category(c) != "Mn"]
    words: list[list[tuple[str, int]]] = []
    previous = "space"
    for c, i in clean:
        is_mark = unicodedata.category(c)[0] == "P" or (c.isascii() and not c.isalnum())
        kind = "space" if c == " " else "han" if is_han(c) else "mark" if is_mark else "letter"
        # An accent between two Han characters separates them, although it is removed.
        apart = kind == "han" and words and any(not fold(x) for x in text[words[-1][-1][1] + 1 : i]) and lowercase
        if kind == previous and kind in ("han", "letter") and not apart:
            words[-1].append((c, i))
        elif kind != "space":
            words.append([(c, i)])
        previous = kind
    cut = segmenter(cut_han)
    result = []
    for word in words:
        lengths = [len(w) for w in cut("".join(c for c, _ in word))] if is_han(word[0][0]) else [len(word)]
        for length in lengths:
            result.append(word[:length])
            word = word[length:]
    return result


def reference(text: str, vocabulary: Vocabulary, cut_han: str = "char") -> list[Token]:
    """Tokens with spans from an explicit map of positions: a span is from the first to the last character it holds."""
    with_marks = [*range(1, len(text) + 1)]
    for i in range(len(text)):
        while vocabulary.lowercase and with_marks[i] < len(text) and not fold(text[with_marks[i]]):
            with_marks[i] += 1
    tokens: list[Token] = []
    for number, word in enumerate(reference_words(text, vocabulary.lowercase, cut_han)):
        spelled = "".join(c for c, _ in word)
        if isinstance(vocabulary, SentencePieceVocabulary):
            pieces = normalized_pieces(spelled, vocabulary)
        else:
            pieces = greedy_pieces(spelled, vocabulary)
        for token, first, stop in pieces:
            start = word[first][1]
            end = with_marks[word[stop - 1][1]] if stop > first else start
            tokens.append((token, start, end, number))
    return tokens


def assert_spans_are_sound(text: str, encoding: Encoding, vocabulary: Vocabulary) -> None:
    """Assert that spans are in order, disjoint except for shared characters, and that they hold their tokens' text."""
    for (_, start, end, word), (_, next_start, next_end, next_word) in pairwise(tokens_of(encoding)):
        assert start <= next_start, repr(text)
        assert end <= next_end, repr(text)
        assert word <= next_word <= word + 1, repr(text)
        # Tokens share at most one character, with its accents.
        assert next_start >= end or sum(fold(c) != "" for c in text[next_start:end]) == 1, repr(text)
    # SentencePiece normalizes after folding. Lower case of sigma depends on the position in the word.
    form = "NFKC" if isinstance(vocabulary, SentencePieceVocabulary) else "NFD"
    for token, start, end, _ in tokens_of(encoding):
        held = "".join(c for c in text[start:end] if not is_dropped(c))
        held = unicodedata.normalize(form, fold(held) if vocabulary.lowercase else held)
        letters = unicodedata.normalize(form, vocabulary.spelling(token)[0])
        assert text[start:end] == text[start:end].strip(WHITE_SPACE), repr(text)
        assert token == vocabulary.unk or letters.replace("ς", "σ") in held.replace("ς", "σ"), repr(text)


def tokens_of(encoding: Encoding) -> list[Token]:
    return [*zip(*(values.tolist() for values in (encoding.ids, encoding.starts, encoding.ends, encoding.word_ids)))]  # noqa: B905


def corpus_ids(cutter: UnitCutter, text: str) -> list[int]:
    return cutter.cut(text.encode("utf-8", "ignore")).units.tolist()
