"""The Spark engine gives the same lexicon as the local engine, byte for byte, and the same errors for invalid text."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from reader.build import main
from reader.errors import InputError
from reader.lexicon import spark_engine
from reader.lexicon.counting import LocalEngine
from reader.lexicon.extraction import Settings, count_best
from reader.lexicon.spark_engine import SETTINGS, SparkEngine, check_spark, one_line_failures, spark_context
from reader.system.output_files import resumable_folder
from reader.text.input_files import find_files
from reader.text.map_segments import Resources
from reader.text.text_files import TextFiles
from tests.reader.lexicon.test_lexicon_file import Scored, entries_of
from tests.support.commands import ERNIE_GRAM, ROOT, assert_one_line_error, call, python

TOP = {2: 300, 3: 200, 4: 20}
CHINESE = "我们在北京大学学习自然语言处理。\n他来到了网易杭研大厦\n\n北京大学的学生喜欢自然语言处理，也喜欢机器学习。\n"

needs_spark = pytest.mark.skipif(
    not find_spec("pyspark") or not (shutil.which("java") or os.environ.get("JAVA_HOME")),
    reason="no pyspark or no Java",
)


@pytest.fixture(scope="module")
def context() -> Iterator[Any]:
    check_spark()
    with spark_context("local[2]") as context:
        yield context


@pytest.fixture
def text(built: Path, tmp_path: Path) -> Path:
    """A folder with the same text in every kind of file."""
    folder = tmp_path / "text"
    folder.mkdir()
    content = (built / "train.txt").read_bytes()
    (folder / "a.txt").write_bytes(content * 3)
    (folder / "b.txt.gz").write_bytes(gzip.compress(content))
    records = [json.dumps({"text": document}) for document in content.decode().split("\n\n")]
    (folder / "c.jsonl").write_text("\n".join(records))
    (folder / "d.jsonl.gz").write_bytes(gzip.compress("\n".join(records).encode()))
    return folder


def counted(engine: LocalEngine, settings: Settings) -> tuple[list[Scored], list[int], str]:
    """Return what an engine counts as values that can be compared with ==."""
    return entries_of(count_best(engine, settings)), engine.totals.tolist(), engine.digest


def count_locally(folder: Path, settings: Settings) -> tuple[list[Scored], list[int], str]:
    work = folder.with_name("work")
    work.mkdir(exist_ok=True)
    return counted(LocalEngine(TextFiles(find_files([str(folder)])), Resources(2 << 30, 1), work), settings)


def spark(context: Any, folder: Path) -> SparkEngine:
    work = folder.with_name("spark")
    work.mkdir(exist_ok=True)
    return SparkEngine(context, TextFiles(find_files([str(folder)])), work)


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_engine, "SEGMENT_BYTES", 1 << 15)


@needs_spark
@pytest.mark.usefixtures("small_segments")
def test_result_equals_the_local_engine_for_all_files(context: Any, text: Path) -> None:
    settings = Settings(True, "char", TOP)
    engine = spark(context, text)
    assert counted(engine, settings) == count_locally(text, settings)
    assert len(engine.segments) > 8
    # Finished segments and entries are not written again.
    before = {path: path.stat().st_mtime_ns for path in text.with_name("spark").rglob("*.npy")}
    assert counted(spark(context, text), settings) == count_locally(text, settings)
    assert before
    assert {path: path.stat().st_mtime_ns for path in before} == before


@needs_spark
@pytest.mark.usefixtures("small_segments")
def test_chinese_is_segmented_as_by_the_local_engine(context: Any, tmp_path: Path) -> None:
    folder = tmp_path / "zh"
    folder.mkdir()
    (folder / "a.txt").write_text(CHINESE * 300, encoding="utf-8")
    settings = Settings(True, "jieba", {1: 5, 2: 10})
    result = counted(spark(context, folder), settings)
    assert result == count_locally(folder, settings)
    assert ("北京大学",) in [words for words, _, _ in result[0]]


@needs_spark
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"good line\n" * 150_000 + b"bad \xff\n", r"a\.txt:150001: not UTF-8"),
        ("a.txt", b"\n \n" * 10, "--input: the text contains no words"),
        ("a.txt.gz", gzip.compress(b"hello world\n" * 1000, mtime=0)[:-20], r"a\.txt\.gz: damaged or cut short"),
    ],
)
def test_errors_equal_the_local_engines(context: Any, tmp_path: Path, name: str, content: bytes, message: str) -> None:
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / name).write_bytes(content)
    settings = Settings(True, "char", {2: 10})
    with pytest.raises(InputError, match=message) as by_spark, one_line_failures():
        count_best(spark(context, folder), settings)
    with pytest.raises(InputError) as locally:
        count_locally(folder, settings)
    assert str(by_spark.value) == str(locally.value)


def arguments(built: Path, text: Path, output: Path) -> list[str]:
    paths = ["--input", str(text), "--vocab", str(built / "vocab.txt"), "--output", str(output)]
    return ["lexicon", "--top", "2:300,3:200", *paths]


@needs_spark
def test_command_makes_the_same_files(built: Path, text: Path, tmp_path: Path) -> None:
    local = python(*ERNIE_GRAM, *arguments(built, text, tmp_path / "local.tsv")).ok()
    by_spark = ["--master", "local[2]"]
    made = python(*ERNIE_GRAM, *arguments(built, text, tmp_path / "spark.tsv"), *by_spark).ok()
    assert made.stdout == local.stdout.replace("local.tsv", "spark.tsv")
    for suffix in ("", ".json"):
        assert (tmp_path / f"spark.tsv{suffix}").read_bytes() == (tmp_path / f"local.tsv{suffix}").read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_missing_pyspark_is_reported_in_one_line(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyspark", "py4j", "py4j.protocol"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it then raises ImportError
    command = arguments(built, built / "train.txt", tmp_path / "lexicon.tsv")
    # The work of a stopped job of the other engine stays.
    with suppress(KeyboardInterrupt), resumable_folder(tmp_path / "lexicon.tsv", {}):
        raise KeyboardInterrupt
    assert_one_line_error(call(main, *command, "--master", "local[2]"), "--master: needs ")
    assert (tmp_path / ".lexicon.tsv.work").is_dir()


def test_executors_import_the_package_from_the_root_of_the_project() -> None:
    path = Path(SETTINGS["spark.executorEnv.PYTHONPATH"])
    assert path == ROOT
    assert (path / "reader" / "lexicon" / "spark_engine.py").is_file()


def test_small_files_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_engine, "SEGMENT_BYTES", 100)
    for name, size in (("a", 60), ("b", 60), ("c", 500), ("d", 0), ("e", 99), ("f", 1), ("g", 1)):
        (tmp_path / f"{name}.txt").write_bytes(b"x" * size)
    groups = spark_engine.grouped(sorted(tmp_path.iterdir()))
    assert ["".join(path.stem for path in group) for group in groups] == ["ab", "c", "def", "g"]
