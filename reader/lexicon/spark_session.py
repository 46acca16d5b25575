"""Spark for one command: started quietly, stopped at the end, its failures in one line."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tqdm import tqdm

from reader.errors import InputError, SystemRefusedError

if TYPE_CHECKING:
    from pyspark import SparkContext

LOOPBACK = "127.0.0.1"


@contextmanager
def spark_context(master: str | None) -> Iterator[SparkContext]:
    """A context of Spark at `master`, or without one on all cores of this machine.

    What Spark prints goes nowhere. Raises InputError if there is no Spark, if it
    will not start, and for what a task raises as InputError; SystemRefusedError if it gives up for want of machines.
    """
    # PySpark warns about the pandas it finds, which is not used here.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"pyspark\.")
    try:
        from py4j.protocol import Py4JJavaError
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkException
        from pyspark.java_gateway import launch_gateway
    except ImportError as error:
        raise InputError(f"--engine spark: {error}; pip install 'ernie-gram[spark]'") from error
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        raise InputError("--engine spark: there is no java to run it with; install Java 17, or set JAVA_HOME")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf().setAll(settings(master).items())
    with tempfile.TemporaryFile() as log:
        try:
            context = SparkContext(conf=conf, gateway=launch_gateway(conf, {"stdout": log, "stderr": log}))
        except (Py4JJavaError, PySparkException) as error:
            reason = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else _last_line(log)
            raise InputError(f"--engine spark: Spark does not start: {reason or error}") from error
        try:
            context.setLogLevel("OFF")
            with one_line_failures():
                yield context
        finally:
            context.stop()


@contextmanager
def one_line_failures() -> Iterator[None]:
    """A failed job as the InputError that a task raised, or else as SystemRefusedError."""
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        failure = _failure(error.java_exception.getMessage() or str(error))
        if failure is None:
            raise
        raise failure from error


@contextmanager
def progress(context: SparkContext, what: str) -> Iterator[None]:
    """A bar over the tasks of the job that runs meanwhile, stage by stage."""
    tracker, done = context.statusTracker(), threading.Event()

    def watch() -> None:
        with tqdm(desc=what, unit=" tasks", leave=False) as bar:
            while not done.wait(0.5):
                stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage))]
                bar.total = sum(stage.numTasks for stage in stages)
                bar.n = sum(stage.numCompletedTasks for stage in stages)
                bar.refresh()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def settings(master: str | None) -> dict[str, str]:
    """What is set for every run; all else is for Spark's own files to say."""
    found = {
        "spark.app.name": "ernie-gram lexicon",
        "spark.master": master or "local[*]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # What is kept comes to the driver, however much it is: --top bounds it.
        "spark.driver.maxResultSize": "0",
        # Where this package is not installed, it is found beside the text, on the storage that all share.
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).resolve().parent.parent),
    }
    if found["spark.master"].startswith("local"):
        found |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return found


def _failure(message: str) -> InputError | None:
    """What made a job fail, out of Spark's message; None for a mistake of this program, which is to be seen."""
    raised = re.findall(r"^(?:reader\.errors\.)?InputError: (.*)$", message, re.MULTILINE)
    if raised:
        return InputError(raised[-1])
    if "PythonException" in message:
        return None
    return SystemRefusedError(f"Spark gave up: {message.splitlines()[0]}")


def _last_line(log: IO[Any]) -> str:
    """The last that was printed, but for where in the Java code it happened."""
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").splitlines()
    return next((line for line in reversed(lines) if line.strip() and not line.startswith("\tat ")), "")
