"""Each command of the reader ends with the next command to type, and that command works."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from reader import next_command
from reader.build import main
from tests.support.commands import ROOT, call
from tests.support.runs import TINY, pretrain_with


def next_after(*arguments: str) -> list[str]:
    """Run a command of the reader; return the words of the command that its last line names."""
    done = call(main, *arguments)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("next: ")
    assert done.stdout.count("next: ") == 1
    return shlex.split(last.removeprefix("next: "))


@pytest.mark.parametrize("options", [[], ["--cased", "--segmenter", "char"]])
def test_the_chain_of_named_commands_leads_from_text_to_training(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.chdir(ROOT)
    folder = tmp_path / "a folder"  # the space must be quoted
    folder.mkdir()
    shutil.copyfile(built / "held_out.txt", folder / "text.txt")
    words = ["vocab", "--input", str(folder / "*.txt"), "--size", "500", "--output", str(folder / "vocab.txt")]
    named = next_after(*words, *options)
    for command, output in (("lexicon", "lexicon.tsv"), ("corpus", "corpus")):
        assert named[:2] == ["ernie-gram", command]
        assert named[-2:] == ["--output", str(folder / output)]
        assert ("--cased" in named) == bool(options)
        named = next_after(*named[1:])
    expected = ["--paths.corpus", str(folder / "corpus"), "--paths.held_out", "null", "--paths.output"]
    assert named == ["ernie-gram", "pretrain", next_command.CONFIG, *expected, str(folder / "run")]
    assert (ROOT / next_command.CONFIG).is_file()
    done = pretrain_with("--config", *named[2:], *TINY, "--check")
    assert done.returncode == 0, done.stderr
    # A result that exists would be refused, so another name is given.
    assert next_after(*words, *options, "--overwrite")[-1] == str(folder / "lexicon_2.tsv")


def test_a_corpus_called_held_out_is_for_evaluation(built: Path, tmp_path: Path) -> None:
    common = ["corpus", "--input", str(built / "held_out.txt"), "--vocab", str(built / "vocab.txt"), "--output"]
    corpus, held_out = str(tmp_path / "corpus"), str(tmp_path / "held_out")
    assert "null" in next_after(*common, corpus)
    expected = ["--paths.corpus", corpus, "--paths.held_out", held_out, "--paths.output", str(tmp_path / "run")]
    for named in (
        next_after(*common, held_out),
        next_after("join", "--input", held_out, "--output", corpus, "--overwrite"),
    ):
        assert named[-6:] == expected


def test_shards_are_joined(built: Path, tmp_path: Path) -> None:
    shard = str(tmp_path / "shard_1")
    common = ["--input", str(built / "held_out.txt"), "--vocab", str(built / "vocab.txt"), "--output", shard]
    named = next_after("corpus", *common, "--shard", "1/1")
    assert named[1:] == ["join", "--input", "SHARD_1", "...", "SHARD_1", "--output", str(tmp_path / "corpus")]


def test_the_config_is_that_of_the_language_of_the_text(tmp_path: Path) -> None:
    """The vocabulary alone does not tell: here both texts have the same one."""
    texts = {
        "en": "the river flows under the old bridge 。\n" * 40,
        "zh": "河水在古老的桥下流过。the bridge\n" * 40,
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    vocab = tmp_path / "vocab.txt"
    both = [str(tmp_path / f"{name}.txt") for name in texts]
    next_after("vocab", "--input", *both, "--size", "120", "--output", str(vocab))
    for name, config in (("en", next_command.CONFIG), ("zh", next_command.CHINESE_CONFIG)):
        text, corpus = str(tmp_path / f"{name}.txt"), str(tmp_path / f"corpus_{name}")
        named = next_after("corpus", "--input", text, "--vocab", str(vocab), "--output", corpus)
        assert named[2] == config
        assert (ROOT / config).is_file()
        assert next_after("check", corpus) == named


def test_a_corpus_with_the_vocabulary_of_a_bert_is_for_training_from_it(built: Path, tmp_path: Path) -> None:
    bert, corpus, text = tmp_path / "bert", str(tmp_path / "corpus"), str(built / "held_out.txt")
    bert.mkdir()
    (bert / "vocab.txt").write_bytes(b"[unused1]\n" + (built / "vocab.txt").read_bytes())
    command = ["corpus", "--input", text, "--vocab", str(bert / "vocab.txt"), "--output", corpus]
    for is_there in (False, True):
        if is_there:
            (bert / "config.json").write_text("{}")
        start = str(bert) if is_there else "BERT"
        named = next_after(*command, "--overwrite")
        assert named[2:5] == [next_command.BERT_CONFIG, "--paths.start", start]
    assert (ROOT / next_command.BERT_CONFIG).is_file()
    named = next_after("check", corpus)
    assert named[2:5] == [next_command.BERT_CONFIG, "--paths.start", "BERT"]


def test_inspect_with_a_text_is_followed_by_its_corpus(built: Path) -> None:
    lexicon, made_with = str(built / "lexicon.tsv"), ["--vocab", str(built / "vocab.txt")]
    text = ["--input", str(built / "held_out.txt")]
    named = next_after("inspect", lexicon, *text, *made_with)
    assert named[1:-2] == ["corpus", *text, *made_with, "--lexicon", lexicon]
    assert "next:" not in call(main, "inspect", lexicon).stdout
