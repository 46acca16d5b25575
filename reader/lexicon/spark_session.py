"""A Spark session for one command: its output is hidden, it stops at the end, and its failures become one line."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, NoReturn

from reader.errors import InputError, SystemRefusedError
from reader.system.installation import PACKAGES
from reader.system.progress import progress

if TYPE_CHECKING:
    from pyspark import SparkContext
    from tqdm import tqdm

LOOPBACK = "127.0.0.1"
# As in setup.py. `pip install 'ernie-gram[spark]'` works only for a published package; this works from a checkout too.
REQUIREMENT = "pyspark>=3.5,<5"


def check_spark() -> None:
    """Raise InputError unless PySpark and Java are installed."""
    # PySpark warns about the installed version of pandas, which is not used here.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"pyspark\.")
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        install = f"{shlex.quote(sys.executable)} -m pip install '{REQUIREMENT}'"
        raise InputError(f"--engine spark: {error}; install it with {install}") from error
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        raise InputError("--engine spark: Java is not found; install Java 17, or set JAVA_HOME")


@contextmanager
def spark_context(master: str | None) -> Iterator[SparkContext]:
    """Yield a context of Spark at `master`; without `master`, Spark runs on all cores of this machine.

    Call `check_spark` first. The output of Spark is hidden. Raises InputError if Spark does not start, and for an
    InputError raised in a task; raises SystemRefusedError if Spark gives up because machines fail.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf().setAll(spark_settings(master).items())
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
    """Turn the failure of a job into the InputError that a task raised, or else into a SystemRefusedError.

    An exception in Python code that is not an InputError is a bug of this program and passes unchanged.
    """
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        failure = _failure(error.java_exception.getMessage() or str(error))
        if failure is None:
            raise
        raise failure from error


@contextmanager
def spark_progress(context: SparkContext, what: str) -> Iterator[None]:
    """Show the progress of the tasks of the active stages while the body runs."""
    tracker, finished = context.statusTracker(), threading.Event()

    def watch(bar: tqdm[NoReturn]) -> None:
        while not finished.wait(0.5):
            stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage))]
            bar.total = sum(stage.numTasks for stage in stages)
            bar.update(sum(stage.numCompletedTasks for stage in stages) - bar.n)

    with progress(what, unit=" tasks") as bar:
        watcher = threading.Thread(target=watch, args=(bar,))
        watcher.start()
        try:
            yield
        finally:
            finished.set()
            watcher.join()


def spark_settings(master: str | None) -> dict[str, str]:
    """Return the settings that every run needs; all other settings come from Spark's own configuration files."""
    settings = {
        "spark.app.name": "ernie-gram lexicon",
        "spark.master": master or "local[*]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # No limit: the driver must receive all kept words and l-grams. --top bounds their number.
        "spark.driver.maxResultSize": "0",
        # Executors without an installed package import it from this path, on the storage shared with the driver.
        "spark.executorEnv.PYTHONPATH": str(PACKAGES),
    }
    if settings["spark.master"].startswith("local"):
        settings |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return settings


def _failure(message: str) -> InputError | None:
    """Return the reason why a job failed, found in Spark's message.

    Returns None for a bug of this program, so that the caller shows the full error.
    """
    raised = re.findall(r"^(?:reader\.errors\.)?(InputError|SystemRefusedError): (.*)$", message, re.MULTILINE)
    if raised:
        kind, reason = raised[-1]
        return {"InputError": InputError, "SystemRefusedError": SystemRefusedError}[kind](reason)
    if "PythonException" in message:
        return None
    return SystemRefusedError(f"Spark gave up: {message.splitlines()[0]}")


def _last_line(log: IO[Any]) -> str:
    """Return the last line of the log that is not blank and not part of a Java stack trace."""
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").splitlines()
    return next((line for line in reversed(lines) if line.strip() and not line.startswith("\tat ")), "")
