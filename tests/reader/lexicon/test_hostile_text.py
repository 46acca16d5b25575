"""Unusual and invalid text, through the command line: it is counted correctly, or refused with a one-line error."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

from reader.corpus.memmap import Corpus
from reader.lexicon.lexicon_file import Lexicon
from reader.tokenization.vocabulary_file import load_vocabulary
from tests.reader.lexicon.test_lexicon_file import entries_of, reference_lexicon
from tests.support.commands import build

TOP = "2:200,3:100"


def hostile_lines() -> list[str]:
    rng = random.Random(4)
    words = ["the", "of", "naïve", "Ærø", "e\u0301a", "中文", "🙂", "can't", "x" * 300, "\u200b", "…", "#1"]
    random_words = lambda count: " ".join(rng.choices(words, k=count))  # noqa: E731
    return [
        random_words(30_000),  # one very long line
        " ".join(f"w{i}" for i in range(8_000)),  # words that occur only once
        *(random_words(8) + "\r" for _ in range(300)),  # line ends of two characters (CR LF)
        *(
            f"con\x00trol\x07 {random_words(3)} zero\u200bwidth joi\u200dner \ufeffinside \ufffdreplaced"
            for _ in range(50)
        ),
        "\u2028".join(random_words(5) for _ in range(50)),  # characters that other programs treat as line ends
        "\x0b \x1c \x85",
        "",
        " \u3000 ",
        "the of " * 1000,
    ]


def test_unusual_text_is_counted_correctly(built: Path, tmp_path: Path) -> None:
    lines = hostile_lines()
    folder = tmp_path / "text"
    folder.mkdir()
    third = len(lines) // 3
    (folder / "0_bom.txt").write_text("\ufeff" + "\n".join(lines[:third]) + "\n", encoding="utf-8")
    (folder / "1_empty.txt").write_text("")
    with gzip.open(folder / "2_compressed.txt.gz", "wt", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(lines[third : 2 * third]))
    records = [{"text": line + "\ud83d" * (i % 2)} for i, line in enumerate(lines[2 * third :])]  # a lone surrogate
    (folder / "3_records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (tmp_path / "all.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    vocab = ["--vocab", str(built / "vocab.txt")]
    lexicon = tmp_path / "lexicon.tsv"
    limit = ["--max_ngram_tokens", "100000", "--segmenter", "char"]
    build("lexicon", "--input", str(folder), *vocab, "--top", TOP, *limit, "--output", str(lexicon))
    reference = reference_lexicon(tmp_path / "all.txt", {2: 200, 3: 100})
    vocabulary = load_vocabulary(built / "vocab.txt")
    spelled = [entry for entry in reference if all(vocabulary.encode(word) != [vocabulary.unk] for word in entry[0])]
    assert 0 < len(spelled) < len(reference)
    assert entries_of(Lexicon.load(lexicon).ngrams) == spelled
    for name, text in (("parts", folder), ("whole", tmp_path / "all.txt")):
        build("corpus", "--input", str(text), *vocab, "--lexicon", str(lexicon), "--output", str(tmp_path / name))
    parts, whole = Corpus(tmp_path / "parts"), Corpus(tmp_path / "whole")
    assert parts.units.tobytes() == whole.units.tobytes()
