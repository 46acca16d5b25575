"""The command line of the reader: its options, inputs that it refuses before any work, and jobs that are stopped."""

from __future__ import annotations

import json
import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from reader.build import build_parser, main
from reader.corpus.memmap import Corpus
from reader.corpus.units import words_to_remember
from reader.errors import InputError
from reader.lexicon.lexicon_file import Lexicon
from reader.system.output_files import resumable_folder
from reader.text.map_segments import max_workers
from tests.support.commands import ERNIE_GRAM, build, call, kill_when
from tests.support.further_cases import only


def run(*arguments: object) -> None:
    args = build_parser().parse_args(list(map(str, arguments)))
    args.run(args)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("new york is a large city , and new york is a port\n" * 3)
    return path


@pytest.mark.parametrize(("content", "t"), [("a b\na b\n", "inf"), ("a a a a\n", "0.0"), ("a b c\n", None)])
def test_a_lexicon_may_have_few_distinct_ngrams(built: Path, tmp_path: Path, content: str, t: str | None) -> None:
    (tmp_path / "text.txt").write_text(content)
    inputs = ["--input", tmp_path / "text.txt", "--vocab", built / "vocab.txt"]
    run("lexicon", *inputs, "--top", "2:1", "--output", tmp_path / "lexicon.tsv")
    lexicon = Lexicon.load(tmp_path / "lexicon.tsv")
    assert len(lexicon) == 1
    assert t in (None, str(lexicon.ngrams.t[0]))


def test_text_without_words_or_ngrams_is_refused(built: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a b\n")
    arguments = ["--input", tmp_path / "text.txt", "--vocab", built / "vocab.txt", "--output", tmp_path / "l.tsv"]
    for options in (["3:1"], ["1:1"], ["2:1", "--max_ngram_tokens", "1"], ["2:1", "--min_count", "2"]):
        with pytest.raises(InputError, match=r"text\.txt: no n-gram is left"):
            run("lexicon", *arguments, "--top", *options)
    assert not (tmp_path / "l.tsv").exists()
    (tmp_path / "text.txt").write_text("\u3000\n\u200b\n")
    with pytest.raises(InputError, match="no words"):
        run("vocab", "--input", tmp_path / "text.txt", "--output", tmp_path / "vocab.txt")


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        *(("lexicon", "--top", value) for value in ("2:10,2:1", "2", "0:10", "2:0", "2:5,6:5")),
        *(("lexicon", "--memory", value) for value in ("100MB", "2 apples")),
        ("lexicon", "--processes", "0"),
    ],
)
def test_a_malformed_value_of_an_option_is_refused(command: str, option: str, value: str) -> None:
    with pytest.raises(InputError, match=rf"argument {option}: .*'{value}'"):
        build_parser().parse_args([command, option, value, "--input", "a", "--vocab", "b", "--output", "c"])


def test_an_impossible_output_is_refused_and_no_input_replaced(built: Path, text: Path, tmp_path: Path) -> None:
    inputs, file = ["--input", text, "--vocab", built / "vocab.txt"], tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(InputError, match=f"{built / 'corpus'}: is not a regular file"):
        run("lexicon", *inputs, "--output", built / "corpus", "--overwrite")
    for output in (file, built / "corpus", "."):
        with pytest.raises(InputError, match=f"^{output}: exists already"):
            run("corpus", *inputs, "--output", output)
    assert file.read_text() == "mine"
    corpus = built / "corpus"
    (tmp_path / "mine.tsv.json").write_text("mine")
    for command, message in (
        (["vocab", "--input", text, "--output", text, "--overwrite"], f"--output: {text} is also an input"),
        (["vocab", "--input", text.parent, "--output", text, "--overwrite"], f"--output: {text} is also an input"),
        (["vocab", "--input", text, "--output", corpus / "vocab.txt", "--overwrite"], "vocab.txt belongs to the"),
        (["lexicon", *inputs, "--output", built / "vocab.txt", "--overwrite"], "vocab.txt is also an input"),
        (["lexicon", *inputs, "--output", tmp_path / "mine.tsv"], r"mine\.tsv\.json: already exists"),
    ):
        with pytest.raises(InputError, match=message):
            run(*command)
    assert (tmp_path / "mine.tsv.json").read_text() == "mine"
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("command", ["lexicon", "corpus"])
def test_a_result_that_another_process_has_written_meanwhile_is_kept(
    built: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """It ends between the first check of the output and the lock of the work folder."""
    output, theirs = tmp_path / "result", built / ("corpus" if command == "corpus" else "lexicon.tsv")
    file = "units.bin" if command == "corpus" else ""

    def resumable(path: Path, plan: dict[str, object]) -> AbstractContextManager[Path]:
        (shutil.copytree if theirs.is_dir() else shutil.copy)(theirs, output)
        return resumable_folder(path, plan)

    monkeypatch.setattr("reader.build.resumable_folder", resumable)
    with pytest.raises(InputError, match=r"result: .*exists"):
        run(command, "--input", text, "--vocab", built / "vocab.txt", "--output", output)
    assert (output / file).read_bytes() == (theirs / file).read_bytes()


# Commands, and parts of their work.
STAGES = [("lexicon", stage) for stage in ("order_2_of_*/0", "split/1", "order_3_of_*/0")]
STAGES += [("corpus", stage) for stage in ("cut/2", "cut/0", "cut/*")]


@pytest.mark.parametrize("killed", only(STAGES[::3], STAGES))
def test_a_killed_job_is_resumed(built: Path, tmp_path: Path, killed: tuple[str, str]) -> None:
    command, stage = killed
    (tmp_path / "text.txt").write_bytes((built / "train.txt").read_bytes() * (40 if command == "corpus" else 12))
    inputs = [command, "--input", str(tmp_path / "text.txt"), "--vocab", str(built / "vocab.txt"), "--processes", "2"]
    inputs += ["--lexicon", str(built / "lexicon.tsv")] if command == "corpus" else ["--top", "2:300,3:200"]

    def has_parts() -> bool:
        return len(list(tmp_path.glob(f"*/.result.work/{stage}"))) >= (3 if stage == "cut/*" else 1)

    for attempt in "12345":
        output = tmp_path / attempt / "result"
        output.parent.mkdir()
        kill_when([*ERNIE_GRAM, *inputs, "--output", str(output)], has_parts)
        # If the process was scheduled before this one, it ended before it could be killed.
        if not output.exists():
            break
    assert not output.exists()
    # A command that is refused leaves the work to the one that was meant.
    assert command == "lexicon" or call(main, *inputs, "--output", str(output), "--cased").returncode == 2
    assert has_parts()
    undisturbed = tmp_path / "undisturbed" / "result"
    undisturbed.parent.mkdir()
    for path in (output, undisturbed):
        build(*inputs, "--output", str(path))
    found, expected = (
        {file.relative_to(path.parent): file.read_bytes() for file in path.parent.rglob("*") if file.is_file()}
        for path in (output, undisturbed)
    )
    assert found == expected


OF_TEXT = ["--text_field=body", "--cased", "--segmenter=char", "--processes=2", "--memory=2GB"]


@pytest.mark.parametrize("more", [*OF_TEXT, "--min_count=100", "--top=2:9"])
def test_a_stopped_job_is_resumed_with_other_options_but_those_of_the_text_and_its_segments(
    built: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    monkeypatch.setattr("reader.text.text_files.text_size", lambda _: 1 << 40)
    plans = list[Any]()

    def stop(_: Path, plan: Any) -> None:
        plans.append(plan)
        raise KeyboardInterrupt

    monkeypatch.setattr("reader.build.resumable_folder", stop)
    for options in ([], [more]):
        sizes = ["--memory", "1GB", "--processes", "1"]
        command = ["--input", text, "--vocab", built / "vocab.txt", "--output", tmp_path / "l.tsv", *sizes, *options]
        with pytest.raises(KeyboardInterrupt):
            run("lexicon", *command)
    assert (plans[0] == plans[1]) == more.startswith(("--min_count", "--top"))


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
        made = [*text, *vocab, "--lexicon", lexicon, "--output", tmp_path / suffix]
        run("corpus", *made)
    assert (tmp_path / "txt.tsv").read_bytes() == (tmp_path / "jsonl.tsv").read_bytes()
    assert Corpus(tmp_path / "txt").info.tokens == Corpus(tmp_path / "jsonl").info.tokens > 100


def test_many_workers_and_the_words_that_they_remember_respect_the_memory_limit() -> None:
    assert [max_workers(memory) for memory in (320 * 10**6, 2 * 10**9)] == [6, 82]
    # A table of a million words takes about 100 MB.
    assert words_to_remember(10**9) == 1 << 20
    assert words_to_remember(2 * 10**9 // 64) * 110 == pytest.approx(2 * 10**9 / 64 / 8, rel=0.01)
