"""Check whether this project computes on this machine's GPUs what it should, and how fast:

    ernie-gram gpu-check

It prints PASS, FAIL or SKIPPED for each check, with a reason or results, and writes all numbers as JSON: attach this
file to a bug report. The exit status is 1 if a check fails. Checks of several GPUs are skipped on a machine with one.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.gpu_check")

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ernie_gram.gpu_checks.check import CHECKS, FIRST, NAMES, Check, Result
from ernie_gram.gpu_checks.processes import run_check
from reader.errors import InputError, OneLineParser
from reader.system.atomic_files import write_atomically
from reader.system.output_files import add_output_file, claimed_file


def run_checks(checks: Sequence[Check], folder: Path, quick: bool, limit: int) -> Iterator[Result]:
    """Run checks in their order, and yield their results; if FIRST fails, the others are skipped."""
    failed = False
    for check in checks:
        if failed:
            yield Result(check.name, "SKIPPED", f"see {FIRST}", 0.0, {})
            continue
        result = run_check(check, folder, quick, limit)
        failed = result.name == FIRST and result.status == "FAIL"
        yield result


def write_report(path: Path, results: Sequence[Result], quick: bool) -> None:
    """Write all results as JSON."""
    try:
        own = version("ernie-gram")
    except PackageNotFoundError:
        own = "not installed"
    document = {
        "ernie_gram": own,
        "command": sys.argv[1:],
        "quick": quick,
        "written": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "summary": summary(results),
        "checks": [asdict(result) for result in results],
    }
    write_atomically(path, json.dumps(document, indent=1) + "\n")


def summary(results: Sequence[Result]) -> str:
    """Return the numbers of results of each kind."""
    return ", ".join(f"{sum(r.status == status for r in results)} {status}" for status in ("PASS", "FAIL", "SKIPPED"))


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_output_file(parser, "the JSON file (%(default)s)", default=Path("gpu_check.json"))
    parser.add_argument("--only", default=",".join(NAMES), metavar="NAME,...", help="these checks (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="small models")
    parser.add_argument(
        "--limit", type=int, default=0, metavar="SECONDS", help="time of each check (default: 60 to 240)"
    )
    arguments = parser.parse_args()
    chosen = arguments.only.split(",")
    for name in chosen:
        if name not in NAMES:
            raise InputError(f"--only: no check {name!r}; the checks are {', '.join(NAMES)}")
    if arguments.limit < 0:
        raise InputError(f"--limit: {arguments.limit} must be positive, or 0 for the limit of each check")
    checks = [check for check in CHECKS if check.name in chosen]
    results: list[Result] = []
    width = max(map(len, NAMES))
    with claimed_file("--output", arguments.output, arguments.overwrite):
        folder = Path(tempfile.mkdtemp(prefix="gpu_check_"))
        for result in run_checks(checks, folder, arguments.quick, arguments.limit):
            results.append(result)
            print(f"{result.status:<7}  {result.name:<{width}}  {result.seconds:6.1f} s  {result.reason}", flush=True)
            # After each check, so that an interrupted command leaves the results so far.
            write_report(arguments.output, results, arguments.quick)
    print(f"{summary(results)}; all numbers: {arguments.output}")
    if any(result.status == "FAIL" for result in results):
        print(f"the files of the checks, with their logs: {folder}")
        sys.exit(1)
    shutil.rmtree(folder)
