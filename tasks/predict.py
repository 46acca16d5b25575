"""Predict with a fine-tuned model: the file that a benchmark asks for, or JSON lines for your own texts.

ernie-gram predict output/mrpc --data glue/MRPC --split test --output MRPC.tsv
ernie-gram predict output/mrpc --input pairs.txt --layout lines --output answers.jsonl
cut -f 2,3 table.tsv | ernie-gram predict output/mrpc --input /dev/stdin --layout lines | grep equal
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from ernie_gram.config import require
from ernie_gram.distributed.device import check_device
from ernie_gram.distributed.launcher import Processes, start_ranks
from ernie_gram.distributed.world import PROCESSES_ON_THIS_MACHINE, RANK, WORLD_SIZE, start_world
from ernie_gram.inference.description import PRECISIONS
from reader import console_script
from reader.build_options import parse_positive
from reader.errors import OneLineParser, counted, first_line, print_note, print_warning
from reader.system.atomic_files import write_atomically
from reader.system.output_files import add_output_file, check_output_path
from tasks.files.official import MEANING, add_bad_row_option, data_folder, load_split
from tasks.files.own_texts import FORMS, load_texts
from tasks.files.submissions import NA_PROB, form_of, json_line, no_answer_probabilities
from tasks.kinds.task import Task
from tasks.training.finetuned import load_finetuned

EPILOG = """--input FILE is read in the form that --layout names:
  task   (default) like the task's own files: the same columns or keys, header and separators. Gold values are not
         needed, and not read. If the task has folders of texts, FILE is a folder, without folders of classes
  lines  one text a line; for pairs, and for context and question, two of them with a tab between. No header
  json   JSON lines; docs/predicting.md has the keys for each kind of task
In `task` and `json`, a column or key `id` has the ID of each row; rows without one are numbered from 0. The answers are
JSON lines, one for each row, in the order of the file. A blank line is a bad row, see --on_bad_row; blank lines at the
end of the file are ignored."""


def parse_arguments() -> argparse.Namespace:
    """Parse the command line; raises InputError."""
    parser = OneLineParser(
        description=first_line(__doc__),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "run",
        type=Path,
        metavar="RUN",
        help="the folder of a fine-tuning, of which `best` is used; or one of its checkpoints, for example "
        "output/mrpc/step_100",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--data", type=Path, metavar="FOLDER", help=MEANING)
    source.add_argument(
        "--input", type=Path, metavar="FILE", help="your own texts, see below; /dev/stdin is standard input"
    )
    parser.add_argument("--layout", choices=FORMS, help="with --input: the form of FILE, see below (default: task)")
    parser.add_argument("--split", help="with --data: the split to predict (default: the task's first test split)")
    add_output_file(parser, "the file to write; or an existing folder, for official names (default: standard output)")
    parser.add_argument("--json", action="store_true", help="with --data: write JSON lines, not a submission")
    add_bad_row_option(parser)
    parser.add_argument(
        "--batch_size", type=parse_positive, default=32, metavar="N", help="samples per batch (%(default)s)"
    )
    parser.add_argument("--device", choices=("auto", "cpu", "gpu"), default="auto", help="(%(default)s)")
    parser.add_argument("--precision", choices=PRECISIONS, help="of matrix products (default: as in training)")
    parser.add_argument(
        "--processes", type=parse_positive, default=1, metavar="N", help="processes that share the work (1)"
    )
    arguments = parser.parse_args()
    arguments.data = arguments.data or (None if arguments.input else data_folder())
    require(bool(arguments.data or arguments.input), "--data or --input", "must be given")
    for name in ("split", "json"):
        require(not (arguments.input and getattr(arguments, name)), f"--{name}", "is for --data; leave it out")
    require(not (arguments.data and arguments.layout), "--layout", "is for --input; leave it out")
    if arguments.input and arguments.input.exists() and not (arguments.input.is_file() or arguments.input.is_dir()):
        require(arguments.processes == 1, "--processes", f"{arguments.input} can be read once only, by one process")
    if arguments.output is None:
        require(max(arguments.processes, WORLD_SIZE) == 1, "--output", "must be given with --processes")
        require(not arguments.overwrite, "--overwrite", "is for --output; leave it out")
    return arguments


def split_of(task: Task, given: str | None) -> str:
    """Return the split to predict; raises InputError if the task has no such split."""
    tests = [*task.submission_splits, *(name for name in task.splits if name.startswith("test"))]
    split = given or next(iter(tests), "")
    known = ", ".join(task.splits)
    require(bool(split), "--split", f"must be given: {task.title} has no test split, but {known}")
    require(split in task.splits, "--split", f"{task.title} has no split {split!r}; it has {known}")
    return split


def files_to_write(output: Path, task: Task, split: str, as_records: bool) -> list[Path]:
    """Return the files to write, the main one first. If `output` is a folder, that one has its official name."""
    name = f"{task.name}_{split}.jsonl" if as_records else form_of(task).file_name(task, split)
    main = output / name if output.is_dir() else output
    return [main, *([main.with_name(NA_PROB)] if task.unanswerable and not as_records else [])]


def main() -> None:
    """Run the command line."""
    arguments = parse_arguments()
    finetuned = load_finetuned(arguments.run)
    task = finetuned.task
    if arguments.precision is not None:
        finetuned = replace(finetuned, precision=arguments.precision)
    split = None if arguments.input else split_of(task, arguments.split)
    processes = max(arguments.processes, PROCESSES_ON_THIS_MACHINE)
    check_device(arguments.device, finetuned.precision, processes, key="--device", precision_key="--precision")
    if split is None:
        rows = load_texts(task, arguments.input, arguments.layout or FORMS[0], arguments.on_bad_row)
    else:
        rows = load_split(task, arguments.data, split, arguments.on_bad_row)
    as_records = split is None or arguments.json
    paths = files_to_write(arguments.output, task, rows.report.split, as_records) if arguments.output else []
    for path in paths:
        check_output_path("--output", path, arguments.overwrite, rows.report.files)
    console = sys.stdout if paths else sys.stderr
    if arguments.processes > 1 and WORLD_SIZE == 1:
        here = arguments.processes
        start_ranks([console_script.__file__, "predict", *sys.argv[1:]], Processes(here, here, 0), hang_seconds=0)
    if RANK == 0:
        for note in finetuned.notes:
            print_note(note)
        print("\n".join(rows.report.lines(limit=20)), file=console, flush=True)
    features = finetuned.kind.encode(rows.examples, finetuned.tokenizer, training=False)
    world = start_world(arguments.device)
    # Imported late: it loads Paddle, which takes seconds, and the errors above are reported without it.
    from tasks.training.network import loaded_scorer

    scores = loaded_scorer(finetuned, world).scores(features, arguments.batch_size)
    if not world.is_first:
        return
    predictions = finetuned.kind.decode(scores, features, rows.examples)
    if as_records:
        files = ["".join(map(json_line, finetuned.kind.records(predictions)))]
    else:
        files = [form_of(task).content(predictions)]
        files += [no_answer_probabilities(predictions)] if task.unanswerable else []
    if not paths:
        print(files[0], end="", flush=True)
    for path, content in zip(paths, files, strict=bool(paths)):
        write_atomically(path, content)
        print(f"{path}: {counted(len(rows.examples), 'prediction')} of {finetuned.source}")
    if split is not None and task.splits[split].labelled:
        print(json.dumps(finetuned.kind.evaluate(predictions), ensure_ascii=False), file=console)
    elif (missing := len(rows.report.bad) + len(rows.report.omitted)) and not as_records:
        print_warning(f"no prediction for {counted(missing, 'row')}; the benchmark asks for all")
