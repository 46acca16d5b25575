"""What the commands of the reader print about their result."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from reader.build import main
from reader.build_messages import BERT_CONFIG, CHINESE_CONFIG, CONFIG
from tests.support.commands import ROOT, call
from tests.support.runs import TINY, pretrain_with


def test_a_count_of_1_has_a_noun_in_the_singular(built: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("new york\n")
    vocab, text = ["--vocab", str(built / "vocab.txt")], ["--input", str(tmp_path / "text.txt")]
    lexicon, corpus = str(tmp_path / "lexicon.tsv"), str(tmp_path / "corpus")
    shown = call(main, "lexicon", *text, *vocab, "--top", "2:1", "--output", lexicon).stdout
    assert f"{lexicon}: 1 n-gram (1 of 2 words); 2 words counted; " in shown
    shown = call(main, "corpus", *text, *vocab, "--lexicon", lexicon, "--output", corpus).stdout
    assert f"{corpus}: 1 document, " in shown
    assert ", 1 unit; 1 n-gram with 100.0% of all tokens; 0.00% of all tokens are [UNK]" in shown
    shown = call(main, "inspect", lexicon, *text, *vocab).stdout
    assert "2 words: 1 of 1 requested; the text has 1 occurrence\n" in shown
    assert " in 1 unit: 100.0% of the tokens are in n-grams (1 n-gram, 1 distinct: " in shown


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
    assert named == ["ernie-gram", "pretrain", CONFIG, *expected, str(folder / "run")]
    assert (ROOT / CONFIG).is_file()
    # Capital letters are there if they are asked for; those of [MASK] always are.
    tokens = [token for token in (folder / "vocab.txt").read_text().splitlines() if not token.startswith("[")]
    for texts in (" ".join(tokens), (folder / "lexicon.tsv").read_text()):
        assert any(map(str.isupper, texts)) == bool(options)
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
    # Corpora with different lexicons do not go together.
    assert "null" in next_after(*common, corpus, "--overwrite", "--lexicon", str(built / "lexicon.tsv"))


def test_shards_are_joined(built: Path, tmp_path: Path) -> None:
    shard = str(tmp_path / "shard_1")
    common = ["--input", str(built / "held_out.txt"), "--vocab", str(built / "vocab.txt"), "--output", shard]
    named = next_after("corpus", *common, "--shard", "1/1")
    assert named[1:] == ["join", "--input", "SHARD_1", "...", "SHARD_1", "--output", str(tmp_path / "corpus")]


def test_the_config_is_that_of_the_language_of_the_text(tmp_path: Path) -> None:
    """The vocabulary does not determine the language: here both texts have the same one."""
    texts = {
        "en": "the river flows under the old bridge 。\n" * 40,
        "zh": "河水在古老的桥下流过。the bridge\n" * 40,
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    vocab = tmp_path / "vocab.txt"
    both = [str(tmp_path / f"{name}.txt") for name in texts]
    next_after("vocab", "--input", *both, "--size", "120", "--output", str(vocab))
    for name, config in (("en", CONFIG), ("zh", CHINESE_CONFIG)):
        text, corpus = str(tmp_path / f"{name}.txt"), str(tmp_path / f"corpus_{name}")
        named = next_after("corpus", "--input", text, "--vocab", str(vocab), "--output", corpus)
        assert named[2] == config
        assert (ROOT / config).is_file()


def test_a_corpus_with_the_vocabulary_of_a_bert_is_for_training_from_it(built: Path, tmp_path: Path) -> None:
    bert = tmp_path / "bert"
    bert.mkdir()
    (bert / "config.json").write_text("{}")
    shutil.copyfile(built / "vocab.txt", bert / "vocab.txt")
    command = ["corpus", "--input", str(built / "held_out.txt"), "--vocab", str(bert / "vocab.txt")]
    named = next_after(*command, "--output", str(tmp_path / "corpus"))
    assert named[2:5] == [BERT_CONFIG, "--paths.start", str(bert)]
    assert (ROOT / BERT_CONFIG).is_file()
