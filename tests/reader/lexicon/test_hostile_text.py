"""Unusual and invalid text, through the command line: it is counted correctly, or refused with a one-line error."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path

import pytest

from reader.build import main
from reader.corpus.memmap import Corpus
from reader.lexicon.lexicon_file import Lexicon
from reader.tokenization.vocabulary_file import load_vocabulary
from tests.reader.lexicon.test_lexicon_file import entries_of, reference_lexicon
from tests.support.commands import build, call

TOP = "2:200,3:100"


def hostile_lines() -> list[str]:
    rng = random.Random(4)
    words = ["the", "of", "naïve", "Ærø", "e\u0301a", "中文", "🙂", "can't", "x" * 300, "\u200b", "…", "#1"]
    random_words = lambda count: " ".join(rng.choices(words, k=count))  # noqa: E731
    size = int(os.environ.get("HOSTILE_LINE", "200000"))
    distinct = int(os.environ.get("HOSTILE_WORDS", "50000"))
    return [
        random_words(size),  # one very long line
        " ".join(f"w{i}" for i in range(distinct)),  # words that occur only once
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


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt.gz", gzip.compress(b"a line of text\n" * 5000, mtime=0)[:-30], "a.txt.gz: damaged or cut short"),
        ("a.txt", b"good\n" * 1000 + "\ud800".encode("utf-8", "surrogatepass") + b"\n", "a.txt:1001: not UTF-8"),
        ("a.jsonl", b'{"text": "x y z"}\n' * 10 + b'{"text": \n', "a.jsonl:11: not JSON"),
        ("a.jsonl", b'{"text": "x\xff"}\n', "a.jsonl:1: not UTF-8"),
    ],
)
def test_error_names_the_file_and_line_that_is_invalid(
    built: Path, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "good.txt").write_text("the one and the other\n" * 10)
    output = tmp_path / "lexicon.tsv"
    inputs = ["--input", str(tmp_path / name), str(tmp_path / "good.txt"), "--processes", "2"]
    done = call(main, "lexicon", *inputs, "--vocab", str(built / "vocab.txt"), "--output", str(output))
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert message in last
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "good.txt"])
