"""Throughput of tokenization with spans per CPU second, compared with others: `python -m tests.benchmarks.tokenizer`.

    --input TEXT --vocab FILE   text, one example per line, and a WordPiece vocabulary (default: the demo text, and a
                                vocabulary trained on it)
    --megabytes N               maximum size of the text

"First time" is a new tokenizer, "again" one that remembers the words of the text. CPU seconds are summed over all
threads. The reference is measured on a twentieth of the text.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from reader.tokenization.sentencepiece import train_sentencepiece
from reader.tokenization.tokenizer import Tokenizer
from reader.tokenization.vocabulary import Vocabulary
from tests.benchmarks.measure import cpu_seconds
from tests.benchmarks.reader import text_and_vocabulary
from tests.support.reference_tokenizer import reference


def print_row(tool: str, texts: list[str], work: Callable[[list[str]], object], runs: int = 5) -> None:
    """Time one tool, and print its throughput as a row of the table."""
    seconds = cpu_seconds(lambda: work(texts), runs)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    print(f"| {tool} | {len(texts) / seconds:,.0f} | {megabytes / seconds:.2f} |", flush=True)


def measure(texts: list[str], vocabulary: Vocabulary) -> None:
    """Print the throughput of all tools on these texts."""
    # Read when `tokenizers` first works on a batch. Threads that wait for each other would count as CPU seconds.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import BertWordPieceTokenizer

    print("| tool | texts per CPU second | MB per CPU second |\n| --- | ---: | ---: |")
    known = Tokenizer(vocabulary)
    print_row("ours, a batch, first time", texts, lambda texts: Tokenizer(vocabulary).encode_batch(texts))
    print_row("ours, a batch, again", texts, known.encode_batch)
    print_row("ours, one by one, again", texts, lambda texts: [known.encode(text) for text in texts])
    words = [text.split() for text in texts]
    print_row("ours, split words, again", texts, lambda _: known.encode_words_batch(words))
    theirs = BertWordPieceTokenizer(vocabulary.ids)
    print_row("BertWordPieceTokenizer of `tokenizers`", texts, theirs.encode_batch)
    print_row(
        "reference in plain Python", texts[::20], lambda texts: [reference(text, vocabulary) for text in texts], 1
    )
    pieces = train_sentencepiece(texts[::4], 8000, True, "jieba")
    print_row(
        "ours, SentencePiece, jieba, first time", texts, lambda texts: Tokenizer(pieces, "jieba").encode_batch(texts), 1
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", nargs="+")
    parser.add_argument("--vocab", type=Path)
    parser.add_argument("--megabytes", type=float, default=4)
    arguments = parser.parse_args()
    text, vocabulary = text_and_vocabulary(arguments)
    measure([line for line in text.decode().split("\n") if line.strip()], vocabulary)


if __name__ == "__main__":
    main()
