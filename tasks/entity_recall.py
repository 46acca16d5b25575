"""Compare fine-tuned taggers by the share of whole entities that they find, by length (figure 6a of the paper).

    ernie-gram entity-recall output/token output/full --data conll2003 --plot recall.png
    ernie-gram entity-recall token_1 token_2 full_1 full_2 --names token token full full --data conll2003

An entity is found if its type and both ends are right. Lengths are in words, in Chinese in characters. There are two
tables: by the length of an entity, and for five groups of sentences by the average length of their entities. Sentences
with the same average are in the same group; the groups are as equal in size as this allows. Numbers in brackets are
95 % bootstrap intervals: the sentences are resampled 1,000 times, in the same way for all models.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("tasks.entity_recall")

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from ernie_gram.config.checks import require
from ernie_gram.distributed.device import check_device
from ernie_gram.distributed.ranks import World
from ernie_gram.distributed.world import start_world
from ernie_gram.experiments.tables import markdown_table
from ernie_gram.plot import image_format, new_figure, save_figure
from reader.build_options import parse_positive
from reader.errors import InputError, OneLineParser, counted, print_note
from reader.system.atomic_files import write_atomically
from reader.system.output_files import add_output_files, check_output_path, claimed_file
from reader.system.progress import progress
from tasks.data.tag_schemes import Entity, entities_of
from tasks.kinds.tagging.example import TaggingExample
from tasks.metrics.entity_recall import Column, Recall, columns_by_group, columns_by_length, recalls
from tasks.prediction.finetuned import LoadedModel, load_finetuned
from tasks.reading.data_option import add_bad_row_option, add_data_option
from tasks.reading.load import load_split
from tasks.reading.official_files import labelled_split

TAGGING = "tagging"


class Part(NamedTuple):
    """A table: its title, its columns, and the recall of each model in each column."""

    title: str
    columns: list[Column]
    recalls: dict[str, list[Recall]]


def parse_arguments() -> argparse.Namespace:
    """Parse the command line; raises InputError."""
    parser = OneLineParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folders of fine-tunings on the same task")
    parser.add_argument(
        "--names", nargs="+", metavar="NAME", help="a name for each RUN; runs with the same name are seeds of one model"
    )
    add_data_option(parser, is_required=True)
    parser.add_argument("--split", help="a split with labels (default: the first dev split)")
    parser.add_argument(
        "--longest",
        type=parse_positive,
        default=4,
        metavar="N",
        help="entities of length N or more are counted together (%(default)s)",
    )
    parser.add_argument(
        "--batch_size", type=parse_positive, default=32, metavar="N", help="samples per batch (%(default)s)"
    )
    parser.add_argument("--device", choices=("auto", "cpu", "gpu"), default="auto", help="(%(default)s)")
    add_bad_row_option(parser)
    add_output_files(
        parser, {"--plot": "draw both tables: .png, .pdf or .svg", "--json": "write the numbers as a JSON object"}
    )
    arguments = parser.parse_args()
    names, runs = arguments.names, len(arguments.runs)
    require(names is None or len(names) == runs, "--names", f"must be one name for each of {counted(runs, 'run')}")
    if arguments.plot:
        image_format(arguments.plot)
        require(arguments.plot != arguments.json, "--json", "must not be the file of --plot")
    return arguments


def names_of(runs: Sequence[Path]) -> list[str]:
    """Return the names of the runs' folders, or their paths if names are not unique."""
    names = [run.resolve().name for run in runs]
    return names if len(set(names)) == len(names) else list(map(str, runs))


def load_models(runs: Sequence[Path]) -> list[LoadedModel]:
    """Return the models of the runs; raises InputError unless all were fine-tuned on the same task of tagging."""
    models = [load_finetuned(run) for run in runs]
    task = models[0].task
    for run, model in zip(runs, models, strict=True):
        require(model.task.kind == TAGGING, str(run), f"{model.task.title} has no entities; give a task of {TAGGING}")
        same = (model.task.name, set(model.task.labels or ())) == (task.name, set(task.labels or ()))
        require(same, str(run), f"was fine-tuned on {model.task.title}, but {runs[0]} on {task.title}")
        for note in model.notes:
            print_note(note)
    return models


def predicted_entities(
    model: LoadedModel, examples: Sequence[TaggingExample], world: World, batch_size: int
) -> list[tuple[Entity, ...]]:
    """Return the entities that a model finds in each example."""
    # Imported late: they load Paddle, which takes seconds, and errors of input are reported without it.
    import paddle

    from ernie_gram.graph import static_mode
    from tasks.prediction.program import Scorer

    features = model.encode(examples)
    with static_mode(paddle.static.Scope()):
        scores = Scorer(model, world).scores(features, batch_size)
    return [entities_of(detail["tags"]) for detail in model.kind.decode(scores, features, examples).details]


def parts_of(
    gold: Sequence[Sequence[Entity]],
    predictions: Sequence[Sequence[Sequence[Entity]]],
    names: Sequence[str],
    longest: int,
    unit: str,
) -> list[Part]:
    """Return the two tables; columns without entities are left out.

    Args:
        gold: the entities of each sentence, at least one in all; predictions: those of each run, in order of `names`.
        unit: the unit of the lengths, for the titles.
    """
    by_length = columns_by_length(gold, predictions, longest)
    by_group = columns_by_group(gold, by_length[0])
    parts = {
        f"Entities by length in {unit}": [column for column in by_length if column.gold.any()],
        f"Sentences by the average length of their entities in {unit}": by_group,
    }
    return [Part(title, columns, recalls(columns, names)) for title, columns in parts.items()]


def markdown(part: Part) -> list[str]:
    """Return the lines of a table in Markdown, a row for each column of the part."""
    models = list(part.recalls)
    head = ["length", "entities", *models, *(f"{name} - {models[0]}" for name in models[1:])]
    rows = []
    for i, column in enumerate(part.columns):
        cells = [part.recalls[name][i] for name in models]
        shown = [f"{cell.mean:.1f} [{cell.low:.1f}, {cell.high:.1f}]" for cell in cells]
        shown += ["{:+.1f} [{:+.1f}, {:+.1f}]".format(*cell.difference) for cell in cells if cell.difference]
        rows.append([column.name, f"{column.gold.sum():,}", *shown])
    return [f"{part.title}: recall, %", "", *markdown_table(head, rows), ""]


def record(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return the tables as objects for JSON; docs/predicting.md has their keys."""
    return [
        {
            "title": part.title,
            "rows": [
                {
                    "length": column.name,
                    "sentences": int((column.gold > 0).sum()),
                    "entities": int(column.gold.sum()),
                    "recall": {name: cells[i]._asdict() for name, cells in part.recalls.items()},
                }
                for i, column in enumerate(part.columns)
            ],
        }
        for part in parts
    ]


def draw(parts: Sequence[Part], target: Path) -> None:
    """Plot the recall of every model with its interval, and small points for single runs."""
    figure, panels = new_figure(len(parts))
    for axes, part in zip(panels, parts, strict=True):
        models = list(part.recalls)
        for number, name in enumerate(models):
            cells = part.recalls[name]
            places = [i + 0.5 * ((number + 0.5) / len(models) - 0.5) for i in range(len(cells))]
            means = [cell.mean for cell in cells]
            bars = [
                [max(0.0, cell.mean - cell.low) for cell in cells],
                [max(0.0, cell.high - cell.mean) for cell in cells],
            ]
            color = f"C{number % 10}"
            axes.errorbar(places, means, bars, fmt="o", markersize=5, capsize=2, color=color, label=name)
            for place, cell in zip(places, cells, strict=True):
                if len(cell.runs) > 1:
                    axes.plot([place + 0.03] * len(cell.runs), cell.runs, ".", markersize=3, color=color, alpha=0.6)
        ticks = [f"{column.name.replace(' to ', '–')}\n{column.gold.sum():,}" for column in part.columns]
        axes.set_xticks(range(len(ticks)), ticks, fontsize=8)
        axes.set_title(part.title, fontsize=9)
        axes.set(xlabel="length, number of entities", ylabel="recall of whole entities, %")
    save_figure(figure, panels, target)


def main() -> None:
    """Run the command line."""
    arguments = parse_arguments()
    names = arguments.names or names_of(arguments.runs)
    # Every device can compute in float32.
    models = [each.with_precision("float32") if each.model else each for each in load_models(arguments.runs)]
    task = models[0].task
    check_device(arguments.device, "float32", 1, key="--device")
    read, report = load_split(task, arguments.data, labelled_split(task, arguments.split), arguments.on_bad_row)
    for option in ("plot", "json"):
        if path := getattr(arguments, option):
            check_output_path(f"--{option}", path, arguments.overwrite, report.files)
    examples = cast(list[TaggingExample], read)
    gold = [example.entities or () for example in examples]
    if not any(gold):
        raise InputError(f"{report.files[0]}: has no entities")
    print("\n".join(report.lines()), flush=True)
    world = start_world(arguments.device)
    predictions = [predicted_entities(model, examples, world, arguments.batch_size) for model in models]
    unit = "characters" if task.language == "zh" else "words"
    with progress("resampling the sentences"):
        parts = parts_of(gold, predictions, names, arguments.longest, unit)
    print("\n".join(["", *(line for part in parts for line in markdown(part))]), end="")
    if arguments.json:
        runs = [{"name": name, "model": str(model.source)} for name, model in zip(names, models, strict=True)]
        content = {
            "task": task.name,
            "split": report.split,
            "sentences": len(gold),
            "runs": runs,
            "tables": record(parts),
        }
        with claimed_file("--json", arguments.json, arguments.overwrite):
            write_atomically(arguments.json, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
        print(f"written  {arguments.json}")
    if arguments.plot:
        with claimed_file("--plot", arguments.plot, arguments.overwrite):
            draw(parts, arguments.plot)
        print(f"written  {arguments.plot}")
