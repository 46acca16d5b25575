"""Chinese words are those of jieba."""

from __future__ import annotations

import logging
import random
import re

import jieba

from reader.tokenization.basic_tokenizer import segmenter

jieba.setLogLevel(logging.WARNING)


def test_all_kinds_of_characters_are_segmented_as_by_jieba() -> None:
    jieba.initialize()
    draw = random.Random(1)
    words = [word for word in jieba.dt.FREQ if re.fullmatch("[\u4e00-\u9fd5]+", word)]
    frequent = random.Random(2).choices(words, [jieba.dt.FREQ[word] for word in words], k=20_000)
    characters = [chr(code) for code in range(0x4E00, 0x9FFF)] + ["㐀", "𠀀", "豈"]
    parts = [*words[:20_000], *frequent, *characters]
    runs = ["".join(draw.choices(parts, k=draw.randint(1, 12))) for _ in range(1000)]
    # Characters that form no words in the dictionary, such as names, so that only the hidden Markov model decides.
    runs += ["".join(draw.choices(characters, k=draw.randint(1, 30))) for _ in range(400)]
    runs += [
        "逃到",
        "他来到了网易杭研大厦",
        "龥龦鿕鿖",
        "中",
        "",
        "﨑一",
        "丁税政",
        "义国公",
        "争长圆",
        "毫无疪",
        "熠熠燿",
    ]
    assert [*map(segmenter("jieba"), runs)] == [*map(jieba.lcut, runs)]
