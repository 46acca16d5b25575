"""Write one HTML page on runs and experiments: `ernie-gram report RUN [RUN ...] --output report.html`.

RUN is the folder of a pre-training or a fine-tuning, or that of a sweep, which stands for all its runs. The page needs
no network, and opens from a file.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from ernie_gram.reporting.masks import filled_masks
from ernie_gram.reporting.parts import finetuning_part, pretraining_part
from ernie_gram.reporting.runs import ReportedRun, comparability, read_runs, run_folders
from ernie_gram.reporting.tables import settings_tables
from ernie_gram.run.run_log import RESULTS
from reader.errors import InputError, OneLineParser, print_note
from reader.system.atomic_files import write_atomically
from reader.system.output_files import add_output_file, check_output_path
from reader.system.progress import progress


def page_of(arguments: argparse.Namespace, notes: list[str]) -> str:
    """Return the HTML of the page; adds notes on what it cannot show.

    Raises InputError for a folder without runs.
    """
    with progress("reading the runs"):
        runs = read_runs([folder for path in arguments.runs for folder in run_folders(path)], notes)
    if not runs:
        raise InputError(f"{', '.join(map(str, arguments.runs))}: no run has records yet")
    notes += comparability(runs)
    by_task: dict[str, list[ReportedRun]] = {}
    for run in runs:
        by_task.setdefault(run.task, []).append(run)
    parts = {task: finetuning_part(of) if task else pretraining_part(of, notes) for task, of in by_task.items()}
    texts = filled_masks(by_task[""], arguments.examples, notes) if "" in by_task and arguments.examples else []
    environment = Environment(loader=PackageLoader("ernie_gram.reporting"), autoescape=True, undefined=StrictUndefined)
    environment.filters["settings_tables"] = settings_tables
    shown = {"by_task": by_task, "parts": parts, "texts": texts}
    return environment.get_template("report.html").render(notes=notes, runs=runs, **shown)


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a run or of an experiment")
    add_output_file(parser, "HTML file to write", required=True)
    examples = "held-out texts with filled masks; 0 loads no model (%(default)s)"
    parser.add_argument("--examples", type=int, default=3, metavar="N", help=examples)
    arguments = parser.parse_args()
    if arguments.examples < 0:
        raise InputError("--examples: must be at least 0")
    inputs = [path / RESULTS for path in arguments.runs]
    notes: list[str] = []
    check_output_path("--output", arguments.output, arguments.overwrite, inputs)
    content = page_of(arguments, notes).encode("utf-8", "replace")
    for note in notes:
        print_note(note)
    write_atomically(arguments.output, content)
    print(f"written  {arguments.output}: {len(content) / 1000:,.0f} KB")
