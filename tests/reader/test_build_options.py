"""Options of the commands that read text: its field, its case and segmenter, memory and processes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from reader.build import build_parser
from reader.build_options import resources_from
from reader.corpus.memmap import Corpus
from reader.corpus.units import words_to_remember
from tests.reader.test_build import run, text

__all__ = ["text"]


@pytest.mark.parametrize("more", [["--text_field", "body"], ["--cased"], ["--segmenter", "char"]])
def test_a_stopped_job_is_not_resumed_with_other_options_of_the_text(
    built: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    plans = list[Any]()

    def stop(_: Path, plan: Any) -> None:
        plans.append(plan)
        raise KeyboardInterrupt

    monkeypatch.setattr("reader.build.resumable_folder", stop)
    for options in ([], more):
        command = ["--input", text, "--vocab", built / "vocab.txt", "--output", tmp_path / "l.tsv", *options]
        with pytest.raises(KeyboardInterrupt):
            run("lexicon", *command)
    assert plans[0] != plans[1]


def test_a_lexicon_among_the_texts_is_no_text_and_the_field_of_the_text_reaches_every_command(
    built: Path, tmp_path: Path
) -> None:
    folder, vocab = tmp_path / "texts", ["--vocab", built / "vocab.txt"]
    folder.mkdir()
    shutil.copy(built / "held_out.txt", folder)
    for suffix in ("", ".json"):
        shutil.copy(built / f"lexicon.tsv{suffix}", folder / f"lexicon.txt{suffix}")
    for source, name in ((folder, "a"), (folder / "held_out.txt", "b")):
        run("corpus", "--input", source, *vocab, "--lexicon", folder / "lexicon.txt", "--output", tmp_path / name)
    assert Corpus(tmp_path / "a").info == Corpus(tmp_path / "b").info
    lines = (built / "held_out.txt").read_text().split("\n")[:400]
    (tmp_path / "t.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "t.jsonl").write_text(json.dumps({"text": "wrong", "doc": {"body": "\n".join(filter(None, lines))}}))
    for suffix, more in (("txt", []), ("jsonl", ["--text_field", "doc.body"])):
        text, lexicon = ["--input", tmp_path / f"t.{suffix}", *more], tmp_path / f"{suffix}.tsv"
        run("lexicon", *text, *vocab, "--top", "2:20", "--output", lexicon)
        made = [*text, *vocab, "--lexicon", lexicon, "--output", tmp_path / suffix, "--shard", "1/1"]
        run("corpus", *made)
    assert (tmp_path / "txt.tsv").read_bytes() == (tmp_path / "jsonl.tsv").read_bytes()
    assert Corpus(tmp_path / "txt").info.tokens == Corpus(tmp_path / "jsonl").info.tokens > 100


def test_many_workers_and_the_words_that_they_remember_respect_the_memory_limit() -> None:
    arguments = ["corpus", "--input", "a", "--vocab", "b", "--output", "c"]
    for memory, workers, allowed in (("2GB", "8", 8), ("320MB", "64", 6), ("2GB", "256", 82)):
        args = build_parser().parse_args([*arguments, "--memory", memory, "--processes", workers])
        assert resources_from(args).workers == allowed
    # A table of a million words takes about 100 MB.
    assert words_to_remember(10**9) == 1 << 20
    assert words_to_remember(2 * 10**9 // 64) * 110 == pytest.approx(2 * 10**9 / 64 / 8, rel=0.01)
