"""A fine-tuned model for Python code: `from tasks import FineTuned`. docs/api.md shows its use.

Paddle is loaded when it is first needed. Nothing here changes the caller's mode, device or random numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ernie_gram.config import check_counts, require
from ernie_gram.config.loading import as_argument, flatten, load_config
from ernie_gram.distributed.device import World, current_place
from ernie_gram.distributed.loading import import_paddle
from ernie_gram.inference.description import PRECISIONS
from reader.errors import InputError, located, quoted
from reader.system.arrays import Float32s
from reader.system.processes import lines_of_module
from reader.tokenization.given_texts import is_table, listed
from tasks.files.own_texts import examples_of, plain_values, table_rows
from tasks.kinds.features import Features
from tasks.kinds.task import Task
from tasks.layouts.rows import Place
from tasks.registry import find_task
from tasks.registry.task_file import settings_of
from tasks.training.config import FinetuneConfig
from tasks.training.finetuned import LoadedModel, load_finetuned
from tasks.training.prepare import output_folder

if TYPE_CHECKING:
    import paddle

    from tasks.training.network import Scorer

# A text, several texts, or the values of a row by name.
Row = str | Sequence[str] | Mapping[str, Any]
ROWS = "rows"  # what errors call the rows


class FineTuned:
    """A fine-tuned model that predicts the answers to rows. Invalid input raises `reader.errors.InputError`.

    Attributes:
        task: its task, with labels.
        source: the folder of the checkpoint.
        tokenizer: that of its training.
    """

    def __init__(self, model: LoadedModel) -> None:
        self._model = model
        self.task: Task = model.task
        self.source = model.source
        self.tokenizer = model.tokenizer
        self._scorer: tuple[Scorer, paddle.static.Scope] | None = None

    def __repr__(self) -> str:
        return f"<FineTuned {self.source}: {self.task.title}, {self.task.kind}>"

    @classmethod
    def load(cls, run: str | Path, precision: str | None = None) -> FineTuned:
        """Read the best model of a fine-tuning, or one checkpoint.

        Args:
            precision: of matrix products, "float32" or "bfloat16". By default it is that of the training.

        Raises InputError if the folder is not that of a fine-tuned model, or if it is damaged, and for another
        precision than these.
        """
        model = load_finetuned(Path(run))
        for note in model.notes:
            warnings.warn(note, stacklevel=2)
        if precision is not None:
            require(precision in PRECISIONS, "precision", f"{precision!r}: give {' or '.join(PRECISIONS)}")
            model = replace(model, precision=precision)
        return cls(model)

    @classmethod
    def train(
        cls,
        task: str | Path,
        model: str | Path,
        data: str | Path | None = None,
        output: str | Path | None = None,
        **settings: Any,
    ) -> FineTuned:
        """Fine-tune a model with the command `ernie-gram finetune`, and return the chosen model.

        The command runs in processes of its own. Its lines are printed here. The same call resumes a run.

        Args:
            task: the name of a task, or the YAML file of a custom task or of settings.
            model: the folder of the model to start from.
            data: the folder with the files of the task; None as for the command.
            output: the run's folder; None means output/TASK.
            settings: those of a YAML file, with sections as dicts: `seed=2, optimizer={"epochs": 3}`.

        Raises InputError with the error of the command.
        """
        paths = {key: path for key, path in (("paths.data", data), ("paths.output", output)) if path}
        given = (f"--{key}={as_argument(each)}" for key, each in {**paths, **flatten(settings)}.items() if each != {})
        options = [*settings_of(str(task)), *given]
        try:
            config = load_config(FinetuneConfig, options)[0]
        except InputError as error:
            raise InputError(str(error).removeprefix("command line: ")) from error
        folder = output_folder(config, find_task(config.task))
        command = ("reader.console_script", "finetune", *options, f"--paths.model={model}")
        with closing(lines_of_module(*command)) as lines:
            for line in lines:
                print(line, flush=True)
        return cls.load(folder)

    def predict(self, rows: Sequence[Row], batch_size: int = 32) -> list[dict[str, Any]]:
        """Return the answers to rows, in order, as `ernie-gram predict` writes them (see `Kind.records`).

        Args:
            rows: each a text; a pair, or context and question, as a tuple; or a dict with the keys of `--layout json`.
                For tagging, a text, or a list of tokens. Or a DataFrame with these keys as columns.
            batch_size: number of samples that are computed together.

        Raises InputError that names the row, counted from 0, if a value is missing, empty or not a text; for a
        batch size that is not positive; and if this device has no products in the precision of the model.
        """
        check_counts(batch_size=batch_size)
        with located(ROWS):
            rows = table_rows(rows, self.task) if is_table(rows) else rows
        rows = listed(rows, ROWS)
        if not rows:
            return []
        names, places = plain_values(self.task), [Place(Path(f"{ROWS}[{i}]")) for i in range(len(rows))]
        pairs = zip(places, rows, strict=True)
        # They are read as the objects of a file of JSON lines.
        examples = examples_of(self.task, [(place, _named(row, names, place)) for place, row in pairs])
        features = self._model.kind.encode(examples, self.tokenizer, training=False)
        predictions = self._model.kind.decode(self._scores(features, batch_size), features, examples)
        return self._model.kind.records(predictions)

    def _scores(self, features: Features, batch_size: int) -> Float32s:
        import_paddle()
        import paddle

        from ernie_gram.graph import static_mode
        from tasks.training.network import loaded_scorer

        if self._scorer is None:
            place, scope = current_place(), paddle.static.Scope()
            with static_mode(scope):
                self._scorer = loaded_scorer(self._model, World(0, 1, place)), scope
        scorer, scope = self._scorer
        with static_mode(scope):
            return scorer.scores(features, batch_size)


def _named(row: Any, names: Sequence[str], where: Place) -> dict[str, Any]:
    """Return the values of a row by name. Raises InputError if there are more or fewer than the task has."""
    if hasattr(row, "to_dict") and not is_table(row):
        row = row.to_dict()  # a row of a DataFrame
    if isinstance(row, Mapping):
        return {key: each.tolist() if isinstance(each, np.ndarray) else each for key, each in row.items()}
    if isinstance(row, bytes) or is_table(row) or not isinstance(row, Iterable):
        raise InputError(f"{where}: expected a text, several in a tuple or a list, or a dict, not {quoted(row)}")
    if names == ["tokens"]:
        return {"text": row} if isinstance(row, str) else {"tokens": list(row)}
    values = (row,) if isinstance(row, str) else tuple(row)
    if len(values) != len(names):
        raise InputError(f"{where}: {len(values)} values, but the task has {', '.join(names)}")
    return _named(dict(zip(names, values, strict=True)), names, where)
