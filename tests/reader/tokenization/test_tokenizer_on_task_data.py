"""The tokenizer on real data of tasks: IDs equal those of the corpus builder, and answers are found again.

    TASK_DATA=FOLDER pytest -s tests/reader/tokenization/test_tokenizer_on_task_data.py

FOLDER has the official files below glue/, squad/, cmrc2018/, drcd/, dureader_robust/ and msra_ner/, and the files
vocab/en/vocab.txt and vocab/zh/vocab.txt.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reader.corpus.units import UnitCutter
from reader.tokenization.sentencepiece import train_sentencepiece
from reader.tokenization.tokenizer import Tokenizer
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.vocabulary_file import load_vocabulary
from tests.support.reference_tokenizer import assert_spans_are_sound, corpus_ids, reference, tokens_of

FOLDER = Path(os.environ.get("TASK_DATA", ""))
pytestmark = pytest.mark.needs("TASK_DATA")

# The IDs of all texts are compared with the corpus builder, and every n-th text also with the slow reference.
REFERENCE_STEP = 100
ANSWER_FILES = {
    "squad/train-v1.1.json": "en",
    "squad/dev-v1.1.json": "en",
    "squad/train-v2.0.json": "en",
    "squad/dev-v2.0.json": "en",
    "cmrc2018/cmrc2018_trial.json": "zh",
    "cmrc2018/cmrc2018_dev.json": "zh",
    "drcd/DRCD_training.json": "zh",
    "drcd/DRCD_dev.json": "zh",
    "dureader_robust/train.json": "zh",
    "dureader_robust/dev.json": "zh",
}


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8-sig").split("\n")


def strings_of(value: Any) -> Iterator[str]:
    """Yield all strings in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings_of(each)


def task_texts() -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each file, and its texts."""
    for path in sorted(FOLDER.glob("glue/*/dev*.tsv")):
        yield str(path.relative_to(FOLDER)), [field for line in lines_of(path) for field in line.split("\t")]
    for name in ANSWER_FILES:
        yield name, [*strings_of(json.loads((FOLDER / name).read_text(encoding="utf-8-sig")))]
    for path in sorted(FOLDER.glob("clue/*/*dev*.json")):
        yield str(path.relative_to(FOLDER)), lines_of(path)
    yield "msra_ner/dev.tsv", lines_of(FOLDER / "msra_ner/dev.tsv")
    yield "conll2003/eng.testa", lines_of(FOLDER / "conll2003/eng.testa")


def vocabulary_of(kind: str, lowercase: bool, segmenter: str) -> Vocabulary:
    """Return the vocabulary of a language, or a sentencepiece model trained on some of the texts."""
    if kind != "sentencepiece":
        return load_vocabulary(FOLDER / "vocab" / kind / "vocab.txt", lowercase)
    files = ("drcd/DRCD_dev", "squad/dev-v1")
    texts = [text for name, texts in task_texts() if name.startswith(files) for text in texts]
    return train_sentencepiece(texts, 6000, lowercase, segmenter)


@pytest.mark.parametrize(
    ("kind", "lowercase", "segmenter"),
    [
        ("sentencepiece", True, "jieba"),
        ("sentencepiece", False, "char"),
        *((language, lowercase, "char") for language in ("en", "zh") for lowercase in (True, False)),
    ],
)
def test_ids_equal_those_of_the_corpus_on_all_texts_of_tasks(kind: str, lowercase: bool, segmenter: str) -> None:
    vocabulary = vocabulary_of(kind, lowercase, segmenter)
    tokenizer, cutter = Tokenizer(vocabulary, segmenter), UnitCutter(vocabulary, None, segmenter)
    num_texts = num_tokens = num_compared = 0
    for file, texts in task_texts():
        encodings = tokenizer.encode_batch(texts)
        ids = np.concatenate([encoding.ids for encoding in encodings])
        # No word spans two texts, so that the IDs of the whole file are those of its texts.
        assert ids.tolist() == corpus_ids(cutter, "\n".join(texts)), file
        for text, encoding in zip(texts[::REFERENCE_STEP], encodings[::REFERENCE_STEP], strict=True):
            assert_spans_are_sound(text, encoding, vocabulary)
            assert tokens_of(encoding) == reference(text, vocabulary, segmenter), (file, text)
            num_compared += 1
        num_tokens += len(ids)
        num_texts += len(texts)
    print(f"\n{num_texts:,} texts, {num_tokens:,} tokens, all equal; {num_compared:,} spans compared", end="")


def test_tagged_sentences_keep_one_or_more_tokens_per_tag() -> None:
    vocabulary = load_vocabulary(FOLDER / "vocab/zh/vocab.txt")
    tokenizer = Tokenizer(vocabulary)
    sentences = [line.split("\t")[0].split("\x02") for line in lines_of(FOLDER / "msra_ner/dev.tsv")[1:] if line]
    num_added = 0
    for words, encoding in zip(sentences, tokenizer.encode_words_batch(sentences), strict=True):
        assert sorted(set(encoding.word_ids.tolist())) == [*range(len(words))]
        expected = [tokenizer.encode(word).ids.tolist() for word in words]
        assert encoding.ids.tolist() == [token for ids in expected for token in ids or [vocabulary.unk]]
        num_added += sum(not ids for ids in expected)
    print(f"\nMSRA-NER dev: {len(sentences):,} sentences, {num_added} characters without a token became [UNK]")
