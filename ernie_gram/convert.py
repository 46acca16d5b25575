"""Convert a model folder to another format: our own, upstream's two, PaddleNLP's, and Hugging Face's BERT.

    ernie-gram convert SRC DST --to bert

SRC is a run's folder, a `step_N`, or a model folder, whose format is recognised by its files. DST is a new folder. If
the format cannot hold all of the model, the command fails with the reason; --accept_loss leaves out what does not fit.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.convert")

import argparse
from pathlib import Path

from ernie_gram.formats import ours
from ernie_gram.formats.heads import TASK_PREFIX
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.registry import WRITTEN_NAMES, read_model, write_model
from reader.errors import OneLineParser, counted, first_line
from reader.system.output_files import claimed_new_folder


def summary(model: ModelRecord) -> str:
    """Return the size of a model in one line."""
    config, parameters = model.config, model.parameters
    numbers = sum(values.size for values in parameters.values())
    parts = [
        f"{counted(config.num_hidden_layers, 'layer')}, {config.hidden_size} wide, "
        f"{counted(config.num_attention_heads, 'head')}",
        f"{len(parameters)} parameters with {numbers:,} numbers",
        f"{len(model.vocabulary):,} tokens",
    ]
    if model.lexicon is not None:
        parts.append(counted(len(model.lexicon), "n-gram"))
    parts.append("prediction heads" if model.pretraining is not None else "no prediction heads")
    if any(name.startswith(TASK_PREFIX) for name in parameters):
        parts.append("the output layer of a task")
    return "; ".join(parts)


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(description=first_line(__doc__))
    parser.add_argument("source", type=Path, metavar="SRC", help="a run's folder, a step_N or a model folder")
    parser.add_argument("target", type=Path, metavar="DST", help="the folder to write; it must not exist")
    parser.add_argument(
        "--to",
        choices=WRITTEN_NAMES,
        default=ours.NAME,
        metavar="FORMAT",
        help=f"{', '.join(WRITTEN_NAMES)} (%(default)s)",
    )
    parser.add_argument(
        "--accept_loss", action="store_true", help="write what the format can hold, and list what is lost"
    )
    arguments = parser.parse_args()
    with claimed_new_folder(arguments.target):
        convert(arguments)


def convert(arguments: argparse.Namespace) -> None:
    """Convert SRC to DST, and print what was read, lost and written; raises InputError."""
    model = read_model(arguments.source)
    print(f"read     {model.source}: {model.format}; {summary(model)}")
    for note in model.notes:
        print(f"note     {note}")
    lost = write_model(model, arguments.target, arguments.to, arguments.accept_loss)
    for reason in lost:
        print(f"lost     {reason}")
    files = ", ".join(sorted(f"{path.name}{'/' * path.is_dir()}" for path in arguments.target.iterdir()))
    print(f"written  {arguments.target}: {arguments.to}; {files}")
