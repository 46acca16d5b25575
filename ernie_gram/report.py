"""Write one HTML page on runs and experiments: `ernie-gram report RUN [RUN ...] --output report.html`.

RUN is the folder of a pre-training or a fine-tuning, or that of a sweep or a benchmark, which stands for all its
runs. The page needs no network, and opens from a file.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.report")

import argparse
from pathlib import Path

from ernie_gram.reporting.baselines import read_baselines
from ernie_gram.reporting.experiments import records_of
from ernie_gram.reporting.page import page
from ernie_gram.reporting.runs import check_vocabularies, is_run, read_runs, run_folders
from ernie_gram.run.results_file import RESULTS
from reader.errors import InputError, OneLineParser, print_note
from reader.system.atomic_files import write_atomically
from reader.system.output_files import check_output_path, file_path


def parse_arguments() -> argparse.Namespace:
    """Return the parsed options; raises InputError."""
    parser = OneLineParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a run or of an experiment")
    parser.add_argument("--output", "--to", type=file_path, required=True, metavar="FILE", help="HTML file to write")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing --output")
    parser.add_argument(
        "--examples",
        type=int,
        default=3,
        metavar="N",
        help="held-out sentences for filled masks, and one for attention; 0 loads no model (%(default)s)",
    )
    parser.add_argument(
        "--baselines",
        type=Path,
        metavar="FILE",
        help="what `ernie-gram count-baselines` has printed (default: counted if the corpus is small)",
    )
    arguments = parser.parse_args()
    if arguments.examples < 0:
        raise InputError("--examples: must be at least 0")
    return arguments


def page_of(arguments: argparse.Namespace) -> tuple[str, list[str]]:
    """Return the HTML of the page and the notes on it.

    Raises InputError for a folder without runs, and for runs that cannot be compared.
    """
    folders = [folder for path in arguments.runs for folder in run_folders(path)]
    runs, notes = read_runs(list({folder.resolve(): folder for folder in folders}.values()))
    check_vocabularies(runs)
    experiments = {}
    for path in dict.fromkeys(arguments.runs):
        if not is_run(path) and (path / RESULTS).is_file():
            experiments[path], more = records_of(path)
            notes += more
    if not runs and not any(experiments.values()):
        raise InputError(f"{', '.join(map(str, arguments.runs))}: no run has records yet")
    counts = read_baselines(arguments.baselines, runs) if arguments.baselines else None
    return page(runs, experiments, counts, arguments.examples, notes)


def main() -> None:
    """Run the command line."""
    arguments = parse_arguments()
    inputs = [path / RESULTS for path in arguments.runs]
    inputs += [arguments.baselines] if arguments.baselines else []
    check_output_path("--output", arguments.output, arguments.overwrite, inputs)
    written, notes = page_of(arguments)
    for note in notes:
        print_note(note)
    content = written.encode("utf-8", "replace")
    write_atomically(arguments.output, content)
    print(f"written  {arguments.output}: {len(content) / 1000:,.0f} KB")
