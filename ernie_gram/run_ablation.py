"""Run the ablation: train the rungs of conf/ablation on the same data, evaluate them, and compare them in a table.

    ernie-gram ablation --output output/ablation --rungs contiguous explicit full --jobs 2

Other options are passed to every rung, e.g. --trainer.max_steps 2000. After an interruption, the same command resumes.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.run_ablation")

from pathlib import Path
from statistics import mean

from ernie_gram.experiments.experiment import experiment_parser, parse_experiment, run_experiment
from ernie_gram.experiments.tables import Finished, by_setting, markdown_table, spread_of
from ernie_gram.plot import curve, new_figure, save_figure, set_step_axis
from ernie_gram.pretraining.ablation_plan import RUNGS, check, plan
from ernie_gram.run.run_log import read_log


def markdown(finished: Finished) -> str:
    """Return a Markdown table: the mean of each rung over its seeds, with minimum and maximum."""
    seeds = sorted({run.seed for run, _ in finished})
    by_rung = {settings[0][1]: results for settings, results in by_setting(finished).items()}
    reference = "explicit" if "explicit" in by_rung else "the mean"
    usual = mean(result["seconds_per_step"] for result in by_rung.get("explicit", [each for _, each in finished]))
    rows = []
    for rung in (rung for rung in RUNGS if rung in by_rung):
        cells = [rung, RUNGS[rung]]
        for key, form in (("ngram_perplexity", ",.0f"), ("perplexity", ",.0f"), ("accuracy", ".1%")):
            spread = spread_of([result.get(key, float("nan")) for result in by_rung[rung]])
            shown = f" ({spread.worst:{form}} - {spread.best:{form}})" if spread.seeds > 1 else ""
            cells.append(f"{spread.mean:{form}}{shown}")
        seconds = mean(result["seconds_per_step"] for result in by_rung[rung])
        rows.append([*cells, f"{seconds:.2f} s ({seconds / usual:.2f} x)"])
    head = ["rung", "what", "n-gram perplexity", "unit perplexity", "accuracy", f"time of a step (to {reference})"]
    title = f"{finished[0][1]['steps']} steps each, seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}."
    return "\n".join([title, "", *markdown_table(head, rows)]) + "\n"


def draw(finished: Finished, target: Path) -> None:
    """Plot the perplexities over masked n-grams and over all masked units against steps, one line per run."""
    figure, panels = new_figure(2)
    colors: dict[str, str] = {}
    rungs = list(RUNGS)
    for run, _ in sorted(finished, key=lambda pair: rungs.index(pair[0].varied["rung"])):
        rung = run.varied["rung"]
        label = None if rung in colors else f"{rung}: {RUNGS[rung]}"
        for axes, key in zip(panels, ("ngram_perplexity", "perplexity"), strict=True):
            steps, values = curve(read_log(run.folder), "eval", key)
            (line,) = axes.plot(steps, values, "o-", markersize=3, color=colors.get(rung), label=label)
            colors[rung] = line.get_color()
    for axes, what in zip(panels, ("masked n-grams", "all masked units"), strict=True):
        set_step_axis(axes, f"Held-out perplexity of {what}", "perplexity", "log")
    save_figure(figure, panels, target)


def report(finished: Finished, output: Path) -> str:
    """Return the table, and write curves.png."""
    draw(finished, output / "curves.png")
    return markdown(finished)


def main() -> None:
    """Run the command line."""
    parser = experiment_parser(__doc__)
    parser.add_argument(
        "--rungs",
        nargs="+",
        choices=list(RUNGS),
        default=list(RUNGS),
        metavar="RUNG",
        help="rungs to train: " + ", ".join(RUNGS) + " (default: all)",
    )
    parser.add_argument("--token_corpus", metavar="DIR", help="corpus of the rung `token`, made without a lexicon")
    options, overrides = parse_experiment(parser)
    runs = plan(options.output, options.rungs, range(1, options.seeds + 1), options.token_corpus, overrides)
    check(runs, options.processes)
    run_experiment(runs, options, report)
