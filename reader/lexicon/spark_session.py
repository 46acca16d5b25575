"""A Spark session for one command: it stops at the end, and its failures become one line."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from reader.errors import InputError
from reader.system.installation import PACKAGES

if TYPE_CHECKING:
    from pyspark import SparkContext

LOOPBACK = "127.0.0.1"


def check_spark() -> None:
    """Raise InputError unless PySpark and Java are installed."""
    if not find_spec("pyspark") or not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        raise InputError("--master: needs Java 17 and PySpark; pip install 'pyspark>=3.5,<5', or set JAVA_HOME")


@contextmanager
def spark_context(master: str) -> Iterator[SparkContext]:
    """Yield a context of Spark at `master`, such as "local[8]".

    Call `check_spark` first. Raises InputError if Spark does not start, and as `one_line_failures` does.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        context = SparkContext(conf=SparkConf().setAll(spark_settings(master).items()))
    except (Py4JJavaError, PySparkException) as error:
        reason = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error
        raise InputError(f"--master: Spark does not start: {reason}") from error
    try:
        context.setLogLevel("OFF")
        with one_line_failures():
            yield context
    finally:
        context.stop()


@contextmanager
def one_line_failures() -> Iterator[None]:
    """Turn the failure of a job into the InputError that a task raised, or into one that says that Spark gave up.

    An exception in Python code that is not an InputError is a bug of this program and passes unchanged.
    """
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        message = error.java_exception.getMessage() or str(error)
        if raised := re.findall(r"^(?:reader\.errors\.)?InputError: (.*)$", message, re.MULTILINE):
            raise InputError(raised[-1]) from error
        if "PythonException" in message:
            raise
        raise InputError(f"Spark gave up: {message.splitlines()[0]}") from error


def spark_settings(master: str) -> dict[str, str]:
    """Return the settings that every run needs; all other settings come from Spark's own configuration files."""
    settings = {
        "spark.app.name": "ernie-gram lexicon",
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "true" if sys.stderr and sys.stderr.isatty() else "false",
        # No limit: the driver must receive all kept words and l-grams. --top bounds their number.
        "spark.driver.maxResultSize": "0",
        # Two attempts at a task would write the same folder.
        "spark.speculation": "false",
        # Executors without an installed package import it from this path, on the storage shared with the driver.
        "spark.executorEnv.PYTHONPATH": str(PACKAGES),
    }
    if master.startswith("local"):
        settings |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return settings
