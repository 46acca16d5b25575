"""Check a fine-tuning before it starts: the task, its files, the model, the output folder, a checkpoint to resume from.

Nothing here imports Paddle, so that errors are reported before it loads.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import IO

from ernie_gram.config import require
from ernie_gram.config.loading import explained_yaml, flatten
from ernie_gram.formats.model import ModelRecord, digest_of
from ernie_gram.formats.parameters import head_size
from ernie_gram.formats.registry import read_model
from ernie_gram.model.config import ModelConfig
from ernie_gram.run.checkpoint import BEST
from ernie_gram.run.run_folder import CONFIG, RESULT, Identity, lock_run, resume_checkpoint
from reader.corpus.memmap import LEXICON
from reader.errors import counted
from reader.lexicon.lexicon_file import Lexicon, segmenter_of
from reader.system.atomic_files import remove_folder, write_atomically
from reader.system.installation import is_settings_file
from reader.tokenization.vocabulary import unknown_warning
from reader.tokenization.vocabulary_file import save_vocabulary
from reader.tokenization.wordpiece import WordPieceVocabulary
from tasks.files.official import VARIABLE, data_folder
from tasks.kinds.task import Task
from tasks.training.config import FinetuneConfig
from tasks.training.data import (
    TaskData,
    epoch_steps,
    read_data,
    shared,
)
from tasks.training.finetuned import TaskDescription, write_description

PREDICTIONS = "predictions_"


@dataclass(frozen=True)
class Finetuning(TaskData):
    """A checked run, with its data.

    Attributes:
        config: its settings.
        output: its folder.
        model: the given model.
        identity: everything that can change the result; checkpoints to resume from must match it.
        found: the checkpoints in its folder before one was chosen.
        resume_from: a checkpoint that rank 0 has verified, or None to start from step 0.
    """

    config: FinetuneConfig
    output: Path
    model: ModelRecord
    identity: Identity
    found: list[Path]
    resume_from: Path | None

    @cached_property
    def epoch_steps(self) -> int:
        """Steps of an epoch."""
        return epoch_steps(len(self.train.features), self.config.optimizer.batch_size)

    @property
    def max_steps(self) -> int:
        """Steps of the whole training."""
        return self.config.optimizer.epochs * self.epoch_steps

    @property
    def encoder(self) -> ModelConfig:
        """The settings of the fine-tuned model: those of the given one, with the run's dropout rates.

        Sizes that the parameters show are explicit. There is a pooler if the head has one.
        """
        parameters, model = self.model.parameters, self.config.dropout.apply(self.model.config)
        size = head_size(parameters)
        return replace(
            model,
            out_emb_size=model.out_emb_size if size is None else size,
            vocab_size=len(parameters["word_embedding"]),
            max_position_embeddings=len(parameters["pos_embedding"]),
            use_pooler=self.kind.has_pooler,
        )

    @property
    def data(self) -> TaskData:
        """The data alone, which a launcher passes to its processes."""
        return TaskData(**{each.name: getattr(self, each.name) for each in fields(TaskData)})

    def describe(self) -> list[str]:
        """Return a summary of the run as lines for the console."""
        settings = self.config.optimizer
        shape = self.model.config
        start = f"resumes from {self.resume_from}" if self.resume_from else "starts from step 0"
        return [
            *(line for split in self.splits for line in split.describe()),
            f"model    {self.model.source} ({self.model.format}): {counted(shape.num_hidden_layers, 'layer')}, "
            f"{shape.hidden_size} wide, {len(self.model.vocabulary or ()):,} tokens",
            *(f"note     {note}" for note in self.model.notes),
            f"training {counted(self.max_steps, 'step')} of {counted(settings.batch_size, 'sample')}, "
            f"{counted(settings.epochs, 'epoch')}",
            f"output   {self.output}: {start}",
        ]

    def warnings(self) -> list[str]:
        """Return a line for each valid but probably unintended property of the settings and the data."""
        advice = "start from a model whose vocabulary is of the texts' language, or larger"
        found = ((split.name, unknown_warning(split.unknown, advice)) for split in self.splits)
        lines = [f"{name}: {warning}" for name, warning in found if warning]
        if not self.dev:
            lines.append("the task has no labelled dev split here: no model is evaluated, and the last one is kept")
        elif not self.dev[0].name.startswith("dev"):
            lines.append(f"the task has no dev split: checkpoints are chosen on the split {self.dev[0].name!r}")
        return lines

    def claim_output(self) -> IO[bytes]:
        """Lock the output folder, and write the files into it, other than parameters, that are needed to use the model.

        Results of an earlier training are removed. Returns the lock, see `lock_run`.
        """
        lock = lock_run(self.output, self.found)
        for path in (self.output / RESULT, *self.output.glob(f"{PREDICTIONS}*")):
            path.unlink(missing_ok=True)
        if self.resume_from is None:
            # It would be mistaken for the best model of this training.
            remove_folder(self.output / BEST)
        write_atomically(self.output / CONFIG, explained_yaml(self.config))
        save_vocabulary(self.model.vocabulary, self.output / self.model.vocabulary.file_name)
        if lexicon := _needed_lexicon(self.model):
            lexicon.save(self.output / LEXICON)
        self.write_description()
        return lock

    def write_description(self, null_threshold: float | None = None) -> None:
        """Write task.json, with the threshold for "no answer" once it has been chosen (see SpanSettings)."""
        settings, precision = self.config.kind_settings, self.config.optimizer.precision
        if null_threshold is not None:
            settings = settings.with_null_threshold(null_threshold)
        own = Path(self.config.task) if is_settings_file(self.config.task) else None
        write_description(
            self.output, TaskDescription(self.task, settings, segmenter_of(self.model.lexicon), precision), own
        )


def prepare(config: FinetuneConfig, world_size: int = 1, is_first: bool = True) -> Finetuning:
    """Check everything that a process of a run on `world_size` processes needs.

    If the launcher has checked the run, the data that it read are used. `is_first` is whether this is rank 0, which
    alone reads large files of a checkpoint, and writes. Raises InputError that names the key or file.
    """
    require(bool(config.task), "task", "must be given: `ernie-gram tasks` shows the tasks")
    require(bool(config.paths.model), "paths.model", "must be given: the folder of the model to start from")
    folder = config.paths.data or str(data_folder() or "")
    require(bool(folder), "paths.data", f"must be given, or {VARIABLE}: the folder with the files of the task")
    config = replace(config, paths=replace(config.paths, data=folder))
    model = read_model(Path(config.paths.model))
    longest, positions = config.input.max_seq_len, len(model.parameters["pos_embedding"])
    too_long = f"{longest} exceeds the {positions} positions of {model.source}"
    require(longest <= positions, "input.max_seq_len", too_long)
    data: TaskData = shared() or read_data(config, model, world_size)
    identity = config.identity() | model_identity(model) | data.digests
    output = output_folder(config, data.task)
    found, resume_from = resume_checkpoint(output, identity, is_first, flatten(asdict(FinetuneConfig())))
    finished = f"{output} has a finished run whose checkpoints were removed; choose another, or remove its {RESULT}"
    require(resume_from is not None or not (output / RESULT).exists(), "paths.output", finished)
    return Finetuning(
        **vars(data),
        config=config,
        output=output,
        model=model,
        identity=identity,
        found=found,
        resume_from=resume_from,
    )


def output_folder(config: FinetuneConfig, task: Task) -> Path:
    """Return the folder of a run."""
    return Path(config.paths.output or f"output/{task.name}")


def _needed_lexicon(model: ModelRecord) -> Lexicon | None:
    """Return the lexicon of a model, if the tokens depend on it."""
    return None if isinstance(model.vocabulary, WordPieceVocabulary) else model.lexicon


def model_identity(model: ModelRecord) -> Identity:
    """Return digests of a model."""
    lexicon = _needed_lexicon(model)
    return {
        "model": digest_of(model.parameters),
        "vocabulary": model.vocabulary.fingerprint,
        "lexicon": None if lexicon is None else lexicon.fingerprint,
    }
