"""The command line of the reader: which files it reads as text, and which inputs it refuses before any work."""

from __future__ import annotations

import errno
import re
import shutil
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import pytest

from reader.build import build_parser, resume_plan
from reader.corpus.memmap import Corpus
from reader.errors import InputError, InUseError, OptionError, SystemRefusedError
from reader.lexicon.lexicon_file import Lexicon
from reader.system.atomic_files import sha256_of
from reader.system.lock_files import locked_name
from reader.system.resumable_folder import resumable_folder
from reader.text.text_files import TextFiles
from reader.tokenization.vocabulary_file import load_vocabulary


def run(*arguments: object) -> None:
    args = build_parser().parse_args(list(map(str, arguments)))
    args.run(args)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("new york is a large city , and new york is a port\n" * 3)
    return path


def lexicon_of(content: str, vocab: Path, folder: Path, top: str) -> Lexicon:
    (folder / "text.txt").write_text(content)
    run("lexicon", "--input", folder / "text.txt", "--vocab", vocab, "--top", top, "--output", folder / "lexicon.tsv")
    return Lexicon.load(folder / "lexicon.tsv")


@pytest.mark.parametrize(("content", "t"), [("a b\na b\n", "inf"), ("a a a a\n", "0.0"), ("a b c\n", None)])
def test_a_lexicon_may_have_few_distinct_ngrams(built: Path, tmp_path: Path, content: str, t: str | None) -> None:
    lexicon = lexicon_of(content, built / "vocab.txt", tmp_path, "2:1")
    assert len(lexicon) == 1
    assert t in (None, str(lexicon.ngrams.t[0]))


@pytest.mark.parametrize(
    "options",
    [
        ["--top", "3:1"],
        ["--top", "1:1"],
        ["--top", "2:1", "--max_ngram_tokens", "1"],
        ["--top", "2:1", "--min_count", "2"],
    ],
)
def test_an_empty_lexicon_is_refused(built: Path, tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "text.txt").write_text("a b\n")
    arguments = ["--input", tmp_path / "text.txt", "--vocab", built / "vocab.txt", "--output", tmp_path / "l.tsv"]
    message = (
        r"text\.txt: no n-gram is left; use more text, other orders in --top, a lower --min_count, a higher --max_"
    )
    with pytest.raises(InputError, match=message):
        run("lexicon", *arguments, *options)
    assert not (tmp_path / "l.tsv").exists()


@pytest.mark.parametrize(
    ("command", "option", "value", "message"),
    [
        ("lexicon", "--top", "2:10,2:1", "an order is given twice"),
        ("lexicon", "--top", "2", "expected ORDER:NUMBER,... such as 2:200000,3:100000"),
        ("lexicon", "--top", "0:10", "orders must be 1 to "),
        ("lexicon", "--top", "2:0", "and numbers at least 1"),
        ("corpus", "--shard", "0/8", "expected I/N with I from 1 to N, such as 2/8"),
        ("corpus", "--shard", "9/8", "expected I/N with I from 1 to N, such as 2/8"),
        ("corpus", "--shard", "2", "expected I/N with I from 1 to N, such as 2/8"),
    ],
)
def test_a_malformed_value_of_an_option_is_refused(command: str, option: str, value: str, message: str) -> None:
    with pytest.raises(InputError, match=f"argument {option}: '{value}': .*{re.escape(message)}"):
        build_parser().parse_args([command, option, value, "--input", "a", "--vocab", "b", "--output", "c"])


def test_an_impossible_output_is_refused_before_any_work(built: Path, text: Path, tmp_path: Path) -> None:
    corpus, file = tmp_path / "corpus", tmp_path / "file"
    inputs = ["--input", text, "--vocab", built / "vocab.txt"]
    run("corpus", *inputs, "--output", corpus)
    file.write_text("mine")
    for command, output, message in (
        ("lexicon", corpus, "is a folder, but the result is a file"),
        ("lexicon", f"{tmp_path}/new/", "there is no such folder; give the path of a file"),
        ("corpus", file, "is a file, but the result is a folder"),
        ("corpus", Path("."), "has no file name"),
    ):
        with pytest.raises(InputError, match=message):
            run(command, *inputs, "--output", output, "--overwrite")
    with pytest.raises(InputError, match="has no file name"):
        run("join", "--input", corpus, "--output", ".", "--overwrite")
    assert file.read_text() == "mine"
    assert not list(tmp_path.glob(".*.work"))


def test_inputs_and_files_of_a_corpus_are_never_replaced(built: Path, text: Path, tmp_path: Path) -> None:
    inputs, corpus = ["--input", text, "--vocab", built / "vocab.txt"], built / "corpus"
    (tmp_path / "mine.tsv.json").write_text("mine")
    for command, message in (
        (["vocab", "--input", text, "--output", text, "--overwrite"], f"--output: {text} is also an input"),
        (["vocab", "--input", text, "--output", corpus / "vocab.txt", "--overwrite"], "vocab.txt belongs to the"),
        (["lexicon", *inputs, "--output", built / "vocab.txt", "--overwrite"], "vocab.txt is also an input"),
        (["lexicon", *inputs, "--output", tmp_path / "mine.tsv"], r"mine\.tsv\.json: already exists"),
        (["join", "--input", corpus, corpus, "--output", corpus, "--overwrite"], "corpus is also an input"),
    ):
        with pytest.raises(InputError, match=message):
            run(*command)
    assert (tmp_path / "mine.tsv.json").read_text() == "mine"
    assert not list(tmp_path.glob(".*"))


def test_a_corpus_that_holds_other_files_is_not_replaced(built: Path, text: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    inputs = ["--input", text, "--vocab", built / "vocab.txt", "--output", corpus]
    run("corpus", *inputs)
    for name in ("run", "text.txt"):
        (corpus / name).mkdir()
        with pytest.raises(InputError, match=f"corpus/{name}: not a file of a corpus; move it, or choose another"):
            run("corpus", *inputs, "--overwrite")
        (corpus / name).rmdir()
    run("corpus", *inputs, "--overwrite")
    (tmp_path / "link").symlink_to(corpus)
    with pytest.raises(InputError, match=r"link is a symbolic link; give the path of its target, .*/corpus"):
        run("corpus", *inputs[:-1], tmp_path / "link", "--overwrite")


def test_text_in_an_input_folder_is_never_replaced_but_an_earlier_vocabulary_is(text: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("my own notes\n")
    vocab = ["vocab", "--input", text.parent, "--size", "200", "--overwrite", "--output"]
    with pytest.raises(InputError, match=r"notes\.txt is also an input"):
        run(*vocab, tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "my own notes\n"
    run(*vocab, tmp_path / "vocab.txt")
    first = (tmp_path / "vocab.txt").read_text()
    run(*vocab, tmp_path / "vocab.txt")
    assert (tmp_path / "vocab.txt").read_text() == first


@pytest.mark.parametrize("command", ["lexicon", "corpus"])
def test_a_result_that_another_process_has_written_meanwhile_is_kept(
    built: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """It ends between the first check of the output and the lock of the work folder."""
    output, theirs = tmp_path / "result", built / ("corpus" if command == "corpus" else "lexicon.tsv")

    def resumable(path: Path, plan: dict[str, object]) -> AbstractContextManager[Path]:
        (shutil.copytree if theirs.is_dir() else shutil.copy)(theirs, output)
        return resumable_folder(path, plan)

    monkeypatch.setattr("reader.build.resumable_folder", resumable)
    with pytest.raises(InputError, match="result: already exists"):
        run(command, "--input", text, "--vocab", built / "vocab.txt", "--output", output)
    assert sha256_of(output / "units.bin" if theirs.is_dir() else output) == sha256_of(
        theirs / "units.bin" if theirs.is_dir() else theirs
    )


def test_the_counts_stay_for_a_lexicon_with_other_options(
    built: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = ["--input", text, "--vocab", built / "vocab.txt"]
    run("lexicon", *inputs, "--output", tmp_path / "fresh.tsv")
    lexicon_bytes = (tmp_path / "fresh.tsv").read_bytes()
    arguments = [*inputs, "--output", tmp_path / "l.tsv"]
    with pytest.raises(OptionError, match="no n-gram is left"):
        run("lexicon", *arguments, "--min_count", "100")
    work = tmp_path / ".l.tsv.work"
    assert list(work.glob("*/0"))

    def split(*_: object) -> None:
        raise AssertionError("the text is split again")

    monkeypatch.setattr("reader.lexicon.local_engine._save_words", split)
    run("lexicon", *arguments)
    assert not work.exists()
    assert (tmp_path / "l.tsv").read_bytes() == lexicon_bytes


def test_a_failing_disk_of_the_text_does_not_cost_the_finished_segments(
    built: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text2.txt").write_text("more\n")
    opened = Path.open

    def fail(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.name == "text2.txt":
            raise OSError(errno.ESTALE, "Stale file handle")
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", fail)
    arguments = ["--input", text, tmp_path / "text2.txt", "--vocab", built / "vocab.txt"]
    with pytest.raises(SystemRefusedError, match=r"text2\.txt: cannot be read: Stale file handle"):
        run("corpus", *arguments, "--output", tmp_path / "c")
    assert (tmp_path / ".c.work" / "plan.json").is_file()


@pytest.mark.parametrize(("size", "kept"), [(1 << 20, True), (1 << 24, True), (1 << 26, False)])
def test_segments_of_a_stopped_job_keep_their_size_if_the_memory_suffices(
    built: Path, text: Path, tmp_path: Path, size: int, kept: bool
) -> None:
    arguments = ["--input", text, "--vocab", built / "vocab.txt", "--output", tmp_path / "c"]
    command = ["corpus", *arguments, "--memory", "2GB", "--processes"]
    args = build_parser().parse_args(list(map(str, [*command, 4])))
    text_files = TextFiles([text])
    plan, _ = resume_plan(args, text_files, vocabulary="v")
    with suppress(KeyboardInterrupt), resumable_folder(tmp_path / "c", plan | {"segment_bytes": size}):
        raise KeyboardInterrupt
    resumed, resources = resume_plan(args, text_files, vocabulary="v")
    assert (resumed["segment_bytes"] == size) is kept
    assert resources.segment_bytes(text_files) == resumed["segment_bytes"]
    # Another text or vocabulary: nothing can be resumed.
    assert resume_plan(args, text_files, vocabulary="w")[0]["segment_bytes"] == plan["segment_bytes"]


def test_two_joins_cannot_write_the_same_corpus(built: Path, tmp_path: Path) -> None:
    arguments = ["join", "--input", built / "corpus", "--output", tmp_path / "joined"]
    with locked_name(tmp_path / "joined", "joined: is being written"), pytest.raises(InUseError, match="is being wri"):
        run(*arguments)
    run(*arguments)
    assert Corpus(tmp_path / "joined").info.units == Corpus(built / "corpus").info.units


def test_vocabularies_and_corpora_in_an_input_folder_are_not_read_as_text(text: Path, tmp_path: Path) -> None:
    """A folder may contain the text, and also the vocabulary and the corpora made from it."""
    vocab, corpus = tmp_path / "vocab.txt", tmp_path / "corpus"
    run("vocab", "--input", tmp_path, "--output", vocab, "--size", 60)
    first = vocab.read_bytes()
    run("vocab", "--input", tmp_path, "--output", vocab, "--size", 60, "--overwrite")
    assert vocab.read_bytes() == first
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "more.txt").write_text("hidden\n")
    for overwrite in ([], ["--overwrite"]):
        run("corpus", "--input", tmp_path, "--vocab", vocab, "--output", corpus, *overwrite)
        assert Corpus(corpus).info.documents == 1
    with pytest.raises(InputError, match="refers to no text file"):
        run("corpus", "--input", corpus, "--vocab", vocab, "--output", tmp_path / "other")


def test_text_without_words_gives_no_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\u3000\n\u200b\n")
    with pytest.raises(InputError, match="no words"):
        run("vocab", "--input", tmp_path / "text.txt", "--output", tmp_path / "vocab.txt")


def test_a_vocabulary_may_have_a_byte_order_mark_and_trailing_blank_lines(built: Path, tmp_path: Path) -> None:
    content = (built / "vocab.txt").read_bytes()
    (tmp_path / "vocab.txt").write_bytes(b"\xef\xbb\xbf" + content + b"\n\r\n")
    read, expected = (load_vocabulary(folder / "vocab.txt", True) for folder in (tmp_path, built))
    assert read.fingerprint == expected.fingerprint


def test_most_frequent_ngrams_exclude_those_that_do_not_occur(
    built: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vocab = ["--vocab", built / "vocab.txt"]
    run("lexicon", "--input", text, *vocab, "--top", "2:20", "--output", tmp_path / "lexicon.tsv")
    (tmp_path / "other.txt").write_text("new york and all the others\n")
    lexicon = ["--lexicon", tmp_path / "lexicon.tsv"]
    run("corpus", "--input", tmp_path / "other.txt", *vocab, *lexicon, "--output", tmp_path / "corpus")
    shown = capsys.readouterr().out
    assert "new york (1)" in shown
    assert "(0)" not in shown
