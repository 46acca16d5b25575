"""The compiled implementation of jieba gives the same words as jieba."""

from __future__ import annotations

import logging
import os
import random
import re
from collections.abc import Iterator
from multiprocessing import Pool
from pathlib import Path

import jieba
import numpy as np
import pytest

from reader.tables.string_table import unpack_strings
from reader.tokenization.chinese_segmentation import cut_runs, segmenter

jieba.setLogLevel(logging.WARNING)

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"


def differences(runs: list[str]) -> list[tuple[list[str], list[str]]]:
    """Return the words of our implementation and those of jieba for each run where they differ."""
    words = unpack_strings(cut_runs("jieba", np.frombuffer("".join(f"{run}\n" for run in runs).encode(), np.uint8)))
    ends = [-1, *(index for index, word in enumerate(words) if not word)]
    assert len(ends) == len(runs) + 1
    ours = [words[ends[i] + 1 : ends[i + 1]] for i in range(len(runs))]
    theirs = [jieba.lcut(run) for run in runs]
    return [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]


def test_near_ties_and_all_kinds_of_characters_are_segmented_as_by_jieba() -> None:
    runs = [
        "古时天子常在春",
        "逃到",
        "暴䳒逃到开封",
        "名称是𢕟𢓨",
        "他来到了网易杭研大厦",
        "龥龦鿕鿖",
        "中",
        "",
        "﨑一",
    ]
    # Runs with two equally probable paths, and runs with a character that is in no word.
    runs += ["丁税政", "义国公", "争长圆", "仪化铅", "导弹葯", "毫无疪", "玷污衊", "熠熠燿"]
    assert differences(runs) == []
    assert segmenter("jieba")("我来到北京清华大学") == ["我", "来到", "北京", "清华大学"]
    assert segmenter("jieba")("") == []


def test_random_words_and_characters_are_segmented_as_by_jieba() -> None:
    draw = random.Random(1)
    words = [word for word in jieba.dt.FREQ if re.fullmatch(f"[{HAN}]+", word)]
    frequent = random.Random(2).choices(words, [jieba.dt.FREQ[word] for word in words], k=20_000)
    characters = [chr(code) for code in range(0x4E00, 0x9FFF)] + ["㐀", "𠀀", "豈"]
    parts = [*words[:20_000], *frequent, *characters]
    runs = ["".join(draw.choices(parts, k=draw.randint(1, 12))) for _ in range(8000)]
    # Characters that form no words in the dictionary, such as names, so that only the hidden Markov model decides.
    runs += ["".join(draw.choices(characters, k=draw.randint(1, 30))) for _ in range(1000)]
    assert differences(runs) == []


@pytest.mark.needs("HAN_TEXT")
def test_every_run_of_a_text_is_segmented_as_by_jieba() -> None:
    runs = re.findall(f"[{HAN}]+", Path(os.environ["HAN_TEXT"]).read_text(encoding="utf-8"))
    distinct = list(dict.fromkeys(runs))

    def batches() -> Iterator[list[str]]:
        yield from (distinct[i : i + 5000] for i in range(0, len(distinct), 5000))

    with Pool() as pool:
        assert [found for batch in pool.imap_unordered(differences, batches()) for found in batch] == []
    print(f"{len(runs):,} runs, {len(distinct):,} distinct: all segmented as by jieba")
