"""The results of a sweep, a benchmark or a study (results.jsonl), with mean and range over seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ernie_gram.reporting.markup import Cell, Html, element, joined, numeric, table
from ernie_gram.reporting.numbers import column
from ernie_gram.reporting.runs import is_number, left_out
from ernie_gram.run.results_file import RESULTS, read_results

# What the records of a study have in place of `varied`.
OF_STUDY = ("variant", "task")


def records_of(folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the records of the finished runs of an experiment, the last one if a run has several, and notes."""
    found, broken = read_results(folder)
    notes = [left_out(folder / RESULTS, broken)] if broken else []
    return [record for record in found.values() if _varied(record) is not None], notes


def results_tables(records: list[dict[str, Any]], caption: str) -> Html:
    """Return a table for each kind of runs: those of a study are pre-trainings and fine-tunings."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        kinds.setdefault(f": {record['kind']}" if "kind" in record else "", []).append(record)
    return joined(_table(members, f"{caption}{kind}") for kind, members in kinds.items())


def _varied(record: dict[str, Any]) -> dict[str, Any] | None:
    """Return what distinguishes a run from the others, besides the seed; None for a record of a study without a run."""
    varied = record.get("varied", {key: record[key] for key in OF_STUDY if key in record} or None)
    return varied if isinstance(varied, dict) else None


def _table(records: list[dict[str, Any]], caption: str) -> Html:
    """Return a table with a row for each combination of what the experiment varies."""
    rows: dict[tuple[tuple[str, str], ...], list[dict[str, Any]]] = {}
    for record in records:
        task = record.get("task")
        varied = {**({"task": task} if task else {}), **(_varied(record) or {})}
        rows.setdefault(tuple((key, str(value)) for key, value in varied.items()), []).append(record)
    keys = list(dict.fromkeys(key for varied in rows for key, _ in varied))
    names = list(
        dict.fromkeys(name for record in records for name, value in record["result"].items() if is_number(value))
    )
    columns = [column([_values(members, name) for members in rows.values()]) for name in names]
    body = [
        [
            *(dict(varied).get(key, "") for key in keys or ["run"]),
            Cell(str(len(members)), ", ".join(str(record["run"]) for record in members), "n"),
            *cells,
        ]
        for (varied, members), *cells in zip(rows.items(), *columns, strict=True)
    ]
    head = [*(keys or [""]), *numeric("runs", *(name.replace("_", " ") for name in names))]
    return Html(element("p", caption, class_="soft") + table(head, body))


def _values(records: list[dict[str, Any]], name: str) -> list[float]:
    return [record["result"][name] for record in records if is_number(record["result"].get(name))]
