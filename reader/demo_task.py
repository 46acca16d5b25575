"""The rows of a small task of classification: from which source is this paragraph?

The sources with the most held-out paragraphs are the labels. Paragraphs of the training text become the rows for
training, held-out ones those for evaluation, about equally many of each label.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

MAX_LABELS = 6
MAX_ROWS = {"train": 400, "dev": 60}  # of one label
MIN_CHARACTERS = 12

Row = tuple[str, str]


def task_tables(train: Iterable[Row], dev: Iterable[Row]) -> dict[str, str]:
    """Return train.tsv and dev.tsv, by name, made of pairs (source, paragraph); nothing if there is a single source."""
    sources = {"train": _by_source(train), "dev": _by_source(dev)}
    counts = {name: len(texts) for name, texts in sources["dev"].items() if name in sources["train"]}
    labels = sorted(sorted(counts), key=lambda name: -counts[name])[:MAX_LABELS]
    if len(labels) < 2:
        return {}
    return {f"{split}.tsv": _table(sources[split], labels, MAX_ROWS[split]) for split in sources}


def description(table: str) -> str:
    """Return one line on a table of `task_tables`: its rows, labels, and what always answering one label scores."""
    labels = Counter(line.split("\t")[1] for line in table.splitlines()[1:])
    name, count = labels.most_common(1)[0]
    share = f"always answering {name} is right in {count / labels.total():.1%}"
    return f"{labels.total():,} rows of {len(labels)} labels ({', '.join(labels)}); {share}"


def _by_source(rows: Iterable[Row]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for source, text in rows:
        if len(text) >= MIN_CHARACTERS:
            found[source].append(text)
    return found


def _table(texts: dict[str, list[str]], labels: list[str], max_rows: int) -> str:
    lines = ["text\tsource"]
    for label in labels:
        found = texts[label]
        count = min(len(found), max_rows)
        lines += [f"{found[i * len(found) // count]}\t{label}" for i in range(count)]  # at even distances
    return "\n".join(lines) + "\n"
