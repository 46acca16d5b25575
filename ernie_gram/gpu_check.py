"""Check in a few minutes whether this project computes on this machine's GPUs what it should, and how fast:

    ernie-gram gpu-check

It prints PASS, FAIL or SKIPPED for each check, with a reason or figures, and writes all figures as JSON, to be attached
to a report of a fault. The exit status is 1 if a check fails. Checks of several GPUs are skipped on a machine with one.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.gpu_check")

import shutil
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from ernie_gram.gpu_checks.catalog import CHECKS, NAMES
from ernie_gram.gpu_checks.outcome import Result
from ernie_gram.gpu_checks.report import row, summary, write_report
from ernie_gram.gpu_checks.runner import run_checks
from reader.errors import InputError, OneLineParser
from reader.system.output_files import add_output_file, check_output_path


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(description=__doc__)
    add_output_file(parser, "--output", "the JSON file (%(default)s)", default=Path("gpu_check.json"))
    parser.add_argument("--only", default=",".join(NAMES), metavar="NAME,...", help="these checks (%(default)s)")
    parser.add_argument(
        "--quick", action="store_true", help="small models, and no search for the largest micro-batch: a minute"
    )
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
    folder = Path(tempfile.mkdtemp(prefix="gpu_check_"))
    check_output_path("--output", arguments.output, arguments.overwrite)
    with closing(run_checks(checks, folder, arguments.quick, arguments.limit)) as found:
        for result in found:
            results.append(result)
            print(row(result), flush=True)
            # After each, so that an interrupted command leaves what it has found.
            write_report(arguments.output, results, arguments.quick)
    print(f"{summary(results)}; all figures: {arguments.output}")
    if any(result.status == "FAIL" for result in results):
        print(f"the files of the checks, with their logs: {folder}")
        sys.exit(1)
    shutil.rmtree(folder)
