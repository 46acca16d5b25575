"""Make tables and figures of a study from its file of results alone.

    ernie-gram study-tables ladder --results ladder.jsonl --output output/ladder_tables

Writes results.md, perplexities.png and scores.png into the folder. Runs without a result are shown as missing. Earlier
tables of the same study are replaced, other files only with --overwrite.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("tasks.study_tables")

import argparse
from pathlib import Path

from reader.errors import InputError, OneLineParser
from reader.system.atomic_files import make_folder, write_atomically
from reader.system.output_files import add_output_file, check_output_folder, check_output_path
from tasks.studies.figures import draw_perplexities, draw_scores
from tasks.studies.plan import FINETUNING
from tasks.studies.results_file import read_results
from tasks.studies.study_file import read_study
from tasks.studies.summaries import Summary
from tasks.studies.tables import report

TABLES, PERPLEXITIES, SCORES = "results.md", "perplexities.png", "scores.png"


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", metavar="STUDY", help="the name of a file in conf/studies, or a YAML file")
    parser.add_argument("--results", type=Path, required=True, metavar="FILE", help="file of results of the study")
    add_output_file(parser, "folder for tables and figures", type=Path, metavar="DIR", required=True)
    options = parser.parse_args()
    check_output_folder("--output", options.output)
    records = read_results(options.results)
    if not records:
        raise InputError(f"{options.results}: no results; `ernie-gram study {options.study}` makes them")
    summary = Summary(read_study(options.study), records)
    others = sorted({record["task"] for record in summary.of_kind(FINETUNING)} - set(summary.tasks))
    if others and not any(summary.scores(name, task) for name in summary.study.variants for task in summary.tasks):
        tasks = ", ".join(others)
        raise InputError(f"{options.results}: has no scores on the tasks of {options.study}, but on {tasks}")
    text = report(summary)
    tables = options.output / TABLES
    is_own = tables.is_file() and tables.read_bytes().startswith(f"# {summary.study.title}\n".encode())
    for name in (TABLES, PERPLEXITIES, SCORES) if options.output.exists() else ():
        check_output_path("--output", options.output / name, options.overwrite or is_own, [options.results])
    make_folder(options.output)
    write_atomically(options.output / TABLES, text)
    drawn = [
        name
        for name, draw in ((PERPLEXITIES, draw_perplexities), (SCORES, draw_scores))
        if draw(summary, options.output / name)
    ]
    print(f"{text}\n{options.output}: {', '.join([TABLES, *drawn])}")
