"""Model cards: what a model is, how to load it, what an export lost, how it was trained, and its scores.

They are Markdown with the YAML front matter that model hubs read; their text is in templates/model_card.md. Unknown
facts are left out, or called not stated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from ernie_gram.formats.model import ModelRecord, TrainingRecord
from ernie_gram.run.checkpoint import Arrays
from reader.errors import InputError
from reader.system.untrusted_text import limited_text, yaml_value

FILE_NAME = "README.md"
FRONT_MATTER = "---"


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
    licence, training = licence_of(model.source), model.training or TrainingRecord()
    front = {"library_name": library, "tags": ["ernie-gram"], **({"license": licence} if licence else {})}
    scores = dict(training.scores)
    return rendered(
        "model_card.md",
        front=_yaml(front),
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
        licence=licence,
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


def licence_of(source: Path) -> str | None:
    """Return the licence in the front matter of the card in a model folder, or None."""
    try:
        lines = limited_text(source / FILE_NAME).splitlines()
        if not lines or lines[0] != FRONT_MATTER:
            return None
        front = yaml_value("\n".join(lines[1 : lines.index(FRONT_MATTER, 1)]))
    except (OSError, ValueError, InputError):
        return None
    found = front.get("license") if isinstance(front, dict) else None
    return found if isinstance(found, str) else None


def _yaml(content: dict[str, Any]) -> str:
    return yaml.safe_dump(content, sort_keys=False).strip()
