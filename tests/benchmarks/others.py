"""The work of the reader done with other tools, for comparison. Each tool is imported only when it is used."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

Scored = tuple[tuple[str, ...], int, float]


@contextmanager
def vocabulary_file(tokens: list[str]) -> Iterator[str]:
    """Yield the path of a temporary vocab.txt with these tokens."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.txt"
        path.write_text("\n".join(tokens) + "\n", encoding="utf-8")
        yield str(path)


def polars_lexicon(text: str, top: dict[int, int]) -> list[Scored]:
    """Return the best n-grams with counts and t (Algorithm 1) by Polars, for lines of words separated by spaces."""
    import polars as pl

    lines = pl.Series("word", text.split("\n")).str.split(" ")
    frame = pl.DataFrame({"line": np.arange(len(lines)), "word": lines}).explode("word")
    frame = frame.with_columns(
        pl.col("word").cast(pl.Categorical), is_text=pl.col("word").str.contains(r"[\p{L}\p{N}]")
    )
    max_order = max(top)
    shifted = [frame.select("line", "word", "is_text").rename(lambda name: f"{name}0")]
    for shift in range(1, max_order):
        shifted.append(frame.select(pl.all().shift(-shift).name.suffix(str(shift))))
    frame = pl.concat(shifted, how="horizontal")
    unigrams = frame.filter("is_text0").group_by("word0").len("count")
    total = unigrams["count"].sum()
    best: list[Scored] = []
    for order, k in top.items():
        names = [f"word{i}" for i in range(order)]
        whole = pl.all_horizontal(f"is_text{i}" for i in range(order)) & (pl.col(f"line{order - 1}") == pl.col("line0"))
        counts = frame.filter(whole).group_by(names).len("count")
        n = counts["count"].sum()
        independent: Any = pl.lit(1.0)
        for name in names:
            counts = counts.join(
                unigrams.select(pl.col("word0").alias(name), pl.col("count").alias(f"of_{name}")), name
            )
            independent = independent * (pl.col(f"of_{name}") / total)
        p = pl.col("count") / n
        counts = counts.with_columns(t=(p - independent) / (p * (1 - p) / n).sqrt())
        texts = [pl.col(name).cast(pl.String) for name in names]
        rows = counts.with_columns(texts).sort(["t", *names], descending=[True] + [False] * order).head(k)
        best += [(row[:order], row[order], row[-1]) for row in rows.select([*names, "count", "t"]).iter_rows()]
    return best


def counter_counts(lines: list[list[str]], max_order: int) -> Counter[tuple[str, ...]]:
    """Return the counts only, by collections.Counter."""
    counts: Counter[tuple[str, ...]] = Counter()
    for words in lines:
        for order in range(1, max_order + 1):
            counts.update(zip(*(words[i:] for i in range(order)), strict=False))
    return counts


def gensim_phrases(lines: list[list[str]]) -> object:
    """Return bigrams only, by gensim's Phrases, which uses another score than t."""
    from gensim.models.phrases import Phrases

    return Phrases(lines, min_count=5, delimiter=" ")


def hf_words(lines: list[str]) -> list[object]:
    """Return words, by the normalizer and pre-tokenizer of Hugging Face's BERT."""
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    normalizer, splitter = BertNormalizer(), BertPreTokenizer()
    return [splitter.pre_tokenize_str(normalizer.normalize_str(line)) for line in lines]


def hf_pieces(lines: list[str], vocab: dict[str, int]) -> object:
    """Return sub-word tokens, by Hugging Face's BERT tokenizer."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    tokenizer = Tokenizer(WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer, tokenizer.pre_tokenizer = BertNormalizer(), BertPreTokenizer()
    return tokenizer.encode_batch(lines, add_special_tokens=False)


def paddlenlp_pieces(lines: list[str], tokens: list[str]) -> Callable[[], object]:
    """Return a function that finds sub-word tokens with PaddleNLP's tokenizer for ERNIE-Gram."""
    from paddlenlp.transformers import ErnieGramTokenizer

    with vocabulary_file(tokens) as path:
        tokenizer = ErnieGramTokenizer(path)
    return lambda: [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(line)) for line in lines]


def dictionary_segments(words: list[str], ngrams: set[tuple[str, ...]], max_order: int) -> list[int]:
    """Return the segment lengths of a line cut into the fewest segments, in plain Python."""
    n = len(words)
    fewest, length = [0] * (n + 1), [1] * n
    for i in range(n - 1, -1, -1):
        fewest[i] = fewest[i + 1] + 1
        for end in range(i + 2, min(n, i + max_order) + 1):
            if fewest[end] + 1 <= fewest[i] and tuple(words[i:end]) in ngrams:
                fewest[i], length[i] = fewest[end] + 1, end - i
    starts = [0]
    while starts[-1] < n:
        starts.append(starts[-1] + length[starts[-1]])
    return [b - a for a, b in pairwise(starts)]


def hf_whole_word_masking(texts: list[str], tokens: list[str], length: int) -> Callable[[], object]:
    """Return a function that masks whole words of texts and batches them with Hugging Face's collator, in NumPy."""
    from transformers import BertTokenizerFast, DataCollatorForLanguageModeling, __version__

    if int(__version__.split(".")[0]) < 5:
        raise ImportError(f"transformers {__version__} is too old; 5 or newer is needed")
    with vocabulary_file(tokens) as path:
        tokenizer = BertTokenizerFast(path)
    collate = DataCollatorForLanguageModeling(
        tokenizer, whole_word_mask=True, mlm_probability=0.15, return_tensors="np"
    )
    examples = [tokenizer(text, truncation=True, max_length=length, return_offsets_mapping=True) for text in texts]
    return lambda: collate([dict(example) for example in examples])
