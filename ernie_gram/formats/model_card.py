"""Model cards: what a model is, how to load it, what an export lost, how it was trained, and its scores.

They are Markdown with the YAML front matter that model hubs read; their text is in templates/model_card.md. Unknown
facts are left out, or called not stated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from ernie_gram.formats.model import ModelRecord, TrainingRecord
from ernie_gram.run.checkpoint import Arrays

FILE_NAME = "README.md"


def model_card(
    model: ModelRecord, name: str, library: str, arrays: Arrays, loading: str = "", lost: Sequence[str] = ()
) -> str:
    """Return the card of a model folder, in Markdown.

    Args:
        model: as it was before it was written.
        name: the title, usually the name of the folder.
        library: what loads the folder.
        arrays: its parameters, which are counted.
        loading: Markdown: how to load it; "" for a folder of our own.
        lost: what the folder does not hold or the library computes differently, one sentence each.
    """
    training = model.training or TrainingRecord()
    scores = dict(training.scores)
    return rendered(
        "model_card.md",
        front=_yaml({"library_name": library, "tags": ["ernie-gram"]}),
        name=name,
        model=model,
        config=model.config,
        vocabulary=model.vocabulary,
        numbers=sum(values.size for values in arrays.values()),
        loading=loading.strip(),
        lost=lost,
        training=training,
        settings=_yaml({"model": asdict(model.config), **(model.pretraining or {}), **training.settings}),
        step=scores.pop("step", None),
        scores={key: f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" for key, value in scores.items()},
    )


def rendered(template: str, **values: Any) -> str:
    """Return a text in templates/ with values."""
    environment = Environment(
        loader=PackageLoader("ernie_gram.formats"),
        autoescape=False,  # Markdown
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["counted"] = "{:,}".format
    return environment.get_template(template).render(values)


def _yaml(content: dict[str, Any]) -> str:
    return yaml.safe_dump(content, sort_keys=False).strip()
