"""Counting by Spark: the lexicon is the local engine's, to the byte, and bad text is named as plainly."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from reader.errors import InputError
from reader.lexicon.extraction import Counted, CountingJob, Settings
from reader.lexicon.local_engine import LocalEngine
from reader.lexicon.spark_engine import MOST_BYTES, SparkEngine
from reader.lexicon.spark_session import spark_context
from reader.text.input_files import find_files
from reader.text.map_segments import Resources
from reader.text.text_files import TextFiles
from tests.reader.lexicon.test_lexicon_file import Scored, entries_of
from tests.support.commands import ROOT, python

TOP = {2: 300, 3: 200, 4: 20}
CHINESE = "我们在北京大学学习自然语言处理。\n他来到了网易杭研大厦\n\n北京大学的学生喜欢自然语言处理，也喜欢机器学习。\n"

needs_spark = pytest.mark.skipif(
    not find_spec("pyspark") or not (shutil.which("java") or os.environ.get("JAVA_HOME")),
    reason="no pyspark or no Java",
)


@pytest.fixture(scope="module")
def context() -> Iterator[Any]:
    with spark_context("local[2]") as context:
        yield context


@pytest.fixture
def text(built: Path, tmp_path: Path) -> Path:
    """A folder with the same text in every kind of file; the plain one is large enough for two units."""
    folder = tmp_path / "text"
    folder.mkdir()
    content = (built / "train.txt").read_bytes()
    (folder / "a.txt").write_bytes(content * 12)
    (folder / "b.txt.gz").write_bytes(gzip.compress(content))
    records = [json.dumps({"text": document}) for document in content.decode().split("\n\n")]
    (folder / "c.jsonl").write_text("\n".join(records))
    (folder / "d.jsonl.gz").write_bytes(gzip.compress("\n".join(records).encode()))
    return folder


def plain(counted: Counted) -> tuple[list[Scored], dict[int, int], str]:
    """What was counted, as what can be compared."""
    return entries_of(counted.best), counted.totals, counted.text


def count_locally(folder: Path, settings: Settings) -> Counted:
    work = folder.with_name("work")
    work.mkdir(exist_ok=True)
    return CountingJob(
        LocalEngine(TextFiles(find_files([str(folder)])), Resources(2 << 30, 1), work), settings, print
    ).run()


@needs_spark
@pytest.mark.parametrize("most_bytes", [MOST_BYTES, 1 << 15])
def test_every_kind_of_file_in_whatever_segments(context: Any, text: Path, most_bytes: int) -> None:
    settings = Settings(True, "char", TOP, {})
    engine = SparkEngine(context, TextFiles(find_files([str(text)])), most_bytes)
    assert plain(CountingJob(engine, settings, print).run()) == plain(count_locally(text, settings))
    assert engine.num_segments > (8 if most_bytes < MOST_BYTES else 2)


@needs_spark
@pytest.mark.parametrize("thresholds", [{2: 500}, {2: 10**6, 3: 10**6}])
def test_a_threshold_too_high_is_found_out(context: Any, text: Path, thresholds: dict[int, int]) -> None:
    said: list[str] = []
    job = CountingJob(
        SparkEngine(context, TextFiles(find_files([str(text)]))), Settings(True, "char", TOP, thresholds), said.append
    )
    assert plain(job.run()) == plain(count_locally(text, Settings(True, "char", TOP, {})))
    for order, threshold in thresholds.items():
        assert any(f"order {order}: n-grams that occur fewer than {threshold:,} times" in line for line in said)


@needs_spark
def test_chinese(context: Any, tmp_path: Path) -> None:
    folder = tmp_path / "zh"
    folder.mkdir()
    (folder / "a.txt").write_text(CHINESE * 300, encoding="utf-8")
    settings = Settings(True, "jieba", {1: 5, 2: 10}, {})
    counted = CountingJob(SparkEngine(context, TextFiles(find_files([str(folder)])), 1 << 12), settings, print).run()
    assert plain(counted) == plain(count_locally(folder, settings))
    assert "北京大学" in counted.best.texts()


@needs_spark
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"good line\n" * 150_000 + b"bad \xff\n", r"a\.txt:150001: not UTF-8"),
        ("a.txt", b"\n \n" * 10, r"a\.txt: contains no text"),
        ("a.txt.gz", gzip.compress(b"hello world\n" * 1000)[:-20], r"a\.txt\.gz: damaged or cut short"),
        ("a.jsonl", b'{"text": "x"}\n{"text"', r"a\.jsonl:2: not JSON"),
    ],
)
def test_bad_text_is_named_as_the_local_engine_names_it(
    context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").mkdir()
    (Path("text") / name).write_bytes(content)
    settings = Settings(True, "char", {2: 10}, {})
    with pytest.raises(InputError, match=f"^text/{message}") as by_spark:
        CountingJob(SparkEngine(context, TextFiles(find_files(["text"]))), settings, print).run()
    with pytest.raises(InputError) as locally:
        count_locally(Path("text"), settings)
    assert str(by_spark.value) == str(locally.value)


def arguments(built: Path, text: Path, output: Path) -> list[str]:
    paths = ["--input", str(text), "--vocab", str(built / "vocab.txt"), "--output", str(output)]
    return ["lexicon", "--top", "2:300,3:200", *paths]


@needs_spark
def test_the_command_makes_the_same_files_without_noise(built: Path, text: Path, tmp_path: Path) -> None:
    local = python("-m", "reader.build", *arguments(built, text, tmp_path / "local.tsv"))
    assert local.returncode == 0, local.stderr
    spark = ["--engine", "spark", "--master", "local[2]"]
    made = python("-m", "reader.build", *arguments(built, text, tmp_path / "spark.tsv"), *spark)
    assert made.returncode == 0, made.stderr
    assert made.stdout == local.stdout.replace("local.tsv", "spark.tsv")
    assert not re.search("warn|exception|log4j", made.stderr, re.IGNORECASE)
    for suffix in ("", ".json"):
        assert (tmp_path / f"spark.tsv{suffix}").read_bytes() == (tmp_path / f"local.tsv{suffix}").read_bytes()
    assert not list(tmp_path.glob(".*"))


@needs_spark
def test_a_bad_line_is_all_that_is_said(built: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(b"good\nbad \xff\n")
    spark = ["--engine", "spark", "--master", "local[2]"]
    done = python("-m", "reader.build", *arguments(built, tmp_path / "text.txt", tmp_path / "lexicon.tsv"), *spark)
    assert done.returncode == 2
    *bars, said = done.stderr.splitlines()
    assert said == f"error: {tmp_path / 'text.txt'}:2: not UTF-8 (invalid start byte at byte 4)"
    assert all(not bar or bar.startswith("splitting") for bar in map(str.strip, bars))


def test_without_pyspark_one_line_says_so(built: Path, tmp_path: Path) -> None:
    (tmp_path / "pyspark.py").write_text("raise ImportError('there is none')\n")
    command = ["-m", "reader.build", *arguments(built, built / "train.txt", tmp_path / "lexicon.tsv")]
    done = python(*command, "--engine", "spark", PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert done.returncode == 2
    assert done.stderr.startswith("error: --engine spark: ")
    assert "pip install 'ernie-gram[spark]'" in done.stderr
    assert done.stderr.count("\n") == 1
    done = python(*command, "--master", "local[2]")
    assert done.stderr == "error: --master: is for --engine spark\n"
