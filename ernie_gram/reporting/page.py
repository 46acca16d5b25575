"""Make the page of a report from its parts, as one HTML file that needs no other file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ernie_gram.reporting.baselines import Counts, counted_baselines
from ernie_gram.reporting.charts import legend
from ernie_gram.reporting.experiments import results_tables
from ernie_gram.reporting.finetuning_part import finetuning_tables, score_charts, score_table
from ernie_gram.reporting.lexicon_part import lexicon_part
from ernie_gram.reporting.markup import Cell, Html, breakable, element, folded, joined, section, table
from ernie_gram.reporting.model_parts import model_parts
from ernie_gram.reporting.pretraining_part import final_table, other_charts, perplexity_charts, training_charts
from ernie_gram.reporting.runs import Group, ReportedRun, coloured, comparability, grouped, runs_of
from ernie_gram.reporting.settings import settings_part
from ernie_gram.reporting.style import SCRIPT, STYLE, colours
from reader.errors import counted

# With this policy, a browser loads nothing from a server.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(
    runs: Sequence[ReportedRun],
    experiments: dict[Path, list[dict]],
    counts: Counts | None,
    examples: int,
    notes: Sequence[str],
) -> tuple[str, list[str]]:
    """Return the HTML of a page, and all notes on it.

    Args:
        runs: in order.
        experiments: the records of results.jsonl of each folder that has them, by the folder.
        counts: perplexities of predictors that count, from a file; None to take those of the runs.
        examples: number of held-out sentences with filled masks.
        notes: what was left out while reading.
    """
    notes = [*notes, *comparability(runs)]
    groups = grouped(runs)
    pretrained = [group for group in groups if not group.runs[0].task]
    by_task: dict[str, list[Group]] = {}
    for group in groups:
        if group.runs[0].task:
            by_task.setdefault(group.runs[0].task, []).append(group)
    parts: dict[str, Html] = {}
    if pretrained:
        parts["Pre-training"] = _pretraining(pretrained, counts, examples, notes)
    first = len(coloured(pretrained))
    for task, members in by_task.items():
        # The task of a user is the path of its file.
        name = f"Fine-tuning: {Path(task).stem}"
        parts[f"Fine-tuning: {task}" if name in parts else name] = _finetuning(members, f"f{first}", first)
        first += len(coloured(members))
    tables = [results_tables(records, folder.resolve().name) for folder, records in experiments.items() if records]
    if tables:
        parts["Results of experiments"] = joined(tables)
    title = _title(runs, experiments)
    links = [element("a", name, href=f"#s{number}") for number, name in enumerate(parts)]
    body = [
        element("h1", title),
        element("nav", *links) if len(links) > 1 else "",
        element("div", *(element("p", note) for note in notes), class_="notes") if notes else "",
        _runs_table(runs) if runs else "",
        _starts_table(runs),
        *(section(name, f"s{number}", part) for number, (name, part) in enumerate(parts.items())),
        element("script", Html(SCRIPT)),
    ]
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Html(STYLE + colours(first))),
    ]
    document = element("html", element("head", *head), "\n", element("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{document}\n", notes


def _title(runs: Sequence[ReportedRun], experiments: Iterable[Path]) -> str:
    folders = [folder.resolve() for folder in experiments]
    others = [run.name for run in runs if run.folder.resolve().parent not in folders]
    names = [*(folder.name for folder in folders), *others]
    return f"Report: {', '.join(names[:4])}{f' and {len(names) - 4} more' if len(names) > 4 else ''}"


def _runs_table(runs: Sequence[ReportedRun]) -> Html:
    rows = []
    for run in runs:
        is_done = bool(run.result) if run.task else run.step == run.max_steps
        of = f" of {run.max_steps:,}" if run.max_steps else ""
        state = f"finished, {counted(run.step, 'step')}" if is_done else f"step {run.step:,}{of}"
        what = f"fine-tuning: {Path(run.task).stem}" if run.task else "pre-training"
        start = run.settings.get("paths.model" if run.task else "paths.start")
        seed = Cell(str(run.settings.get("seed", "")), style="n")
        short = (Cell(each, style="short") for each in (what, state))
        rows.append([breakable(run.name), *short, seed, Cell(breakable(str(start or "random weights")), style="path")])
    head = ["run", "what", "state", Cell("seed", style="n"), "starts from"]
    return element("details", element("summary", counted(len(runs), "run")), table(head, rows), open=len(runs) <= 8)


def _starts_table(runs: Sequence[ReportedRun]) -> Html | str:
    """Return a folded table of the starts of the runs; "" without any."""
    found = [(run.name, start) for run in runs for start in run.starts]
    columns = list(dict.fromkeys(key for _, start in found for key in start))
    rows = [[breakable(name), *(breakable(str(start.get(key, ""))) for key in columns)] for name, start in found]
    return folded("Where the results come from", table(["run", *columns], rows)) if rows else ""


def _pretraining(groups: Sequence[Group], given: Counts | None, examples: int, notes: list[str]) -> Html:
    runs = runs_of(groups)
    counts, source = (given, "counts from the given file") if given else counted_baselines(runs)
    lines = coloured(groups)
    charts = [each for each in perplexity_charts(lines, counts) if each]
    lexicons, lexicon_notes = lexicon_part(runs)
    of_models, model_notes = model_parts(groups, examples) if examples else ([], [])
    notes += [*lexicon_notes, *model_notes]
    several = any(len(group.runs) > 1 for group in groups)
    text = "Perplexities on the held-out text, before the first step and at the last evaluation; lower is better. "
    text += "With several seeds: mean, and range. " * several + (f"{source[0].upper()}{source[1:]}." if source else "")
    explained = element("p", text, class_="soft")
    last = section("Last evaluation", "last", explained, final_table(groups, counts), level=3) if charts else ""
    drawn = element("div", *charts, *training_charts(lines), class_="charts")
    curves = section("Curves", "curves", legend([line.label for line in lines]), drawn, other_charts(lines), level=3)
    return joined([last, curves, settings_part(groups, "settings"), *of_models, lexicons])


def _finetuning(groups: Sequence[Group], anchor: str, first: int) -> Html:
    several = any(len(group.runs) > 1 for group in groups)
    lines = coloured(groups)
    text = "Scores of the chosen model, as the official scorer computes them. "
    text += "With several seeds: mean, and range. " * several
    scores = section("Scores", f"{anchor}s", element("p", text, class_="soft"), score_table(groups), level=3)
    curves = section(
        "Curves",
        f"{anchor}c",
        legend([line.label for line in lines], first),
        element("p", "A ring marks the chosen evaluation.", class_="soft"),
        element("div", *score_charts(lines, first), class_="charts"),
        *finetuning_tables(groups),
        level=3,
    )
    return joined([scores, curves, settings_part(groups, f"{anchor}t")])
