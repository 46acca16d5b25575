"""Counting with Spark, for text that is too large for one machine to count in acceptable time.

The stages, and the files that connect them, are those of the local engine. Spark runs the tasks: the driver and all
executors see the same storage, with the text and the work folder beside the output. A file is read by one task, as a
stream; the size of the other tasks is bounded for any size of the text. The driver receives only kept words and
l-grams.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from reader.errors import InputError
from reader.lexicon.counting import LocalEngine, split_segment
from reader.system.installation import PACKAGES
from reader.system.processes import Result, Task
from reader.text.map_segments import Resources
from reader.text.text_files import TextFiles, text_size

if TYPE_CHECKING:
    from pyspark import SparkContext

# Bytes of text per segment, and of memory per task. They do not depend on the machines, so that a stopped job can be
# resumed on others.
SEGMENT_BYTES, TASK_MEMORY_BYTES = 16 << 20, 1 << 29
SETTINGS = {
    "spark.app.name": "ernie-gram lexicon",
    "spark.ui.enabled": "false",
    # No limit: the driver must receive all kept words and l-grams. --top bounds their number.
    "spark.driver.maxResultSize": "0",
    # Two attempts at a task would write the same folder.
    "spark.speculation": "false",
    # Executors without an installed package import it from this path, on the storage shared with the driver.
    "spark.executorEnv.PYTHONPATH": str(PACKAGES),
}
# Of a Spark on this machine only, whose name may have no address.
LOCAL_SETTINGS = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def check_spark() -> None:
    """Raise InputError unless PySpark and Java are installed."""
    if not find_spec("pyspark") or not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        raise InputError("--master: needs Java 17 and PySpark; pip install 'pyspark>=3.5,<5', or set JAVA_HOME")


@contextmanager
def spark_context(master: str) -> Iterator[SparkContext]:
    """Yield a context of Spark at `master`, such as "local[8]".

    All settings but those that every run needs come from Spark's own configuration files. Call `check_spark` first.
    Raises InputError if Spark does not start, and as `one_line_failures` does.
    """
    from pyspark import SparkConf, SparkContext

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = SETTINGS | (LOCAL_SETTINGS if master.startswith("local") else {})
    settings["spark.ui.showConsoleProgress"] = "true" if sys.stderr and sys.stderr.isatty() else "false"
    with one_line_failures():
        context = SparkContext(master, conf=SparkConf().setAll(settings.items()))
        try:
            context.setLogLevel("OFF")
            yield context
        finally:
            context.stop()


@contextmanager
def one_line_failures() -> Iterator[None]:
    """Turn the failure of a job into the InputError that a task raised, or into one that says that Spark gave up.

    An exception in Python code that is not an InputError is a bug of this program and passes unchanged.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        of_java = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else None
        message = of_java or str(error)
        if raised := re.findall(r"^(?:reader\.errors\.)?InputError: (.*)$", message, re.MULTILINE):
            raise InputError(raised[-1]) from error
        if "PythonException" in message:
            raise
        raise InputError(f"--master: Spark gave up: {message.splitlines()[0]}") from error


class SparkEngine(LocalEngine):
    """Applies the counting stages to one text in tasks of Spark."""

    def __init__(self, context: SparkContext, text: TextFiles, folder: Path) -> None:
        """`folder` is the work folder for finished results, on storage that all machines share."""
        cores = context.defaultParallelism
        super().__init__(text, Resources(TASK_MEMORY_BYTES * cores, cores), folder.absolute())
        self._context = context

    def _split(self, lowercase: bool, segmenter: str, folder: Path) -> list[Path]:
        # The working directory of an executor may differ from that of the driver.
        paths = [path.absolute() for path in self._text.paths]
        split = partial(_split_files, lowercase, segmenter, self._text.text_field, SEGMENT_BYTES)
        tasks = [(group, folder / f"{number}") for number, group in enumerate(grouped(paths))]
        done = list(self._map(split, tasks, ""))
        self._text.file_digests = [digest for _, digests in done for digest in digests]
        return [segment for segments, _ in done for segment in segments]

    def _map(self, function: Callable[[Task], Result], tasks: Sequence[Task], what: str) -> Iterable[Result]:
        # A few parts per core: to start a part takes longer than a small task.
        return self._context.parallelize(tasks, min(len(tasks), 4 * self._resources.workers)).map(function).collect()


def grouped(paths: list[Path]) -> list[list[Path]]:
    """Return files in groups of consecutive ones, each as small as possible with SEGMENT_BYTES or more of text."""
    groups, size = list[list[Path]](), SEGMENT_BYTES
    for path in paths:
        if size >= SEGMENT_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(path)
        size += text_size(path)
    return groups


def _split_files(
    lowercase: bool, segmenter: str, text_field: str, segment_bytes: int, task: tuple[list[Path], Path]
) -> tuple[list[Path], list[bytes]]:
    """Split a group of files into words; return the folders of its segments, and TextFiles.file_digests.

    Raises InputError for invalid text.
    """
    paths, folder = task
    folder.mkdir(exist_ok=True)
    text, saved = TextFiles(paths, text_field), list[Path]()
    for segment in text.segments(segment_bytes):
        saved.append(folder / f"{len(saved)}")
        if not saved[-1].is_dir():
            split_segment(lowercase, segmenter, segment).save(saved[-1])
    return saved, text.file_digests
