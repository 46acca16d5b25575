"""What fine_tuning.py trains: tasks, numbers of rows, and settings, the same for every side of a comparison."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tasks.data.examples import Example
from tasks.kinds.multiple_choice import MultipleChoiceExample
from tasks.kinds.sentences import SentenceExample
from tasks.kinds.settings import HeadSettings, InputSettings, SpanSettings
from tasks.kinds.span.example import SpanExample
from tasks.kinds.tagging.example import TaggingExample
from tasks.registry import TASKS
from tasks.training.config import EvaluationConfig, FinetuneConfig, FinetuneOptimizer, FinetunePaths, FinetuneTrainer

NEVER = 1 << 30


@dataclass(frozen=True)
class Plan:
    """A task of the comparison.

    Attributes:
        task: its name in the registry.
        rows: number of training examples, evenly spread over the training file; None for all.
        max_seq_len, epochs, batch_size, length_pool, micro_batch, learning_rate, doc_stride: as in FinetuneConfig.
    """

    task: str
    rows: int | None
    max_seq_len: int = 128
    epochs: int = 3
    batch_size: int = 32
    length_pool: int = 1
    micro_batch: int | None = None
    learning_rate: float = 1e-4
    doc_stride: int = 128

    def config(self, model: Path | str, data: Path | str, output: Path | str, seed: int) -> FinetuneConfig:
        """Return the settings of a run of ours.

        They are BERT's and those of transformers' heads: the same rate for all layers, and dropout before the output
        layer, but none before that of span extraction.
        """
        is_span = TASKS[self.task].kind == "span"
        return FinetuneConfig(
            task=self.task,
            seed=seed,
            input=InputSettings(max_seq_len=self.max_seq_len, long_text="head", doc_stride=self.doc_stride),
            span=SpanSettings(max_answer_length=30),
            head=HeadSettings(dropout=0.0 if is_span else 0.1, lm_transform=False),
            optimizer=FinetuneOptimizer(
                learning_rate=self.learning_rate,
                batch_size=self.batch_size,
                length_pool=self.length_pool,
                epochs=self.epochs,
                layer_decay=1.0,
            ),
            # The model of the last step counts: no side chooses on the data that it is scored on.
            evaluation=EvaluationConfig(every=NEVER, choose="last"),
            paths=FinetunePaths(str(model), str(data), str(output)),
            trainer=FinetuneTrainer(
                log_every=10, save_every=NEVER, resume="never", device="cpu", micro_batch=self.micro_batch
            ),
        )


PLANS = {
    plan.task: plan
    for plan in (
        Plan("cola", None),
        Plan("rte", None, epochs=3),
        Plan("mrpc", None),
        Plan("stsb", None),
        Plan("sst2", 6000, epochs=2),
        Plan("conll2003", 2000),
        Plan("squad1", 2000, max_seq_len=384, epochs=2, batch_size=16),
        # Of a small model: a higher rate, and no sample longer than the sequences that it is pre-trained on.
        Plan("chnsenticorp", None, epochs=2, learning_rate=5e-4),
        Plan("lcqmc", None, epochs=2, learning_rate=5e-4),
        Plan("tnews", None, epochs=2, learning_rate=5e-4),
        Plan("ocnli", None, learning_rate=5e-4),
        Plan("msra_ner", 2000, learning_rate=5e-4),
        Plan("cmrc2018", None, epochs=2, learning_rate=5e-4, doc_stride=64),
    )
}


def settings_of(config: FinetuneConfig, threads: int) -> dict[str, Any]:
    """Return the settings that a program of another project needs, as one flat dict."""
    return {
        **asdict(config.input),
        "n_best": config.span.n_best,
        "max_answer_length": config.span.max_answer_length,
        **asdict(config.optimizer),
        "eval_batch_size": config.evaluation.batch_size,
        "seed": config.seed,
        "threads": threads,
    }


def plain(example: Example, with_gold: bool) -> dict[str, Any]:
    """Return an example as plain values: for a program of another project, or as a line of one's own texts."""
    if isinstance(example, SentenceExample):
        second = {} if example.text_b is None else {"text_b": example.text_b}
        return {"text_a": example.text_a} | second | ({"label": example.gold} if with_gold else {})
    if isinstance(example, TaggingExample):
        return {"tokens": example.tokens} | ({"tags": example.tags} if with_gold else {})
    if isinstance(example, MultipleChoiceExample):
        texts = {"context": example.context, "question": example.question, "options": example.options}
        return texts | ({"answer": example.answer} if with_gold else {})
    assert isinstance(example, SpanExample)
    texts = {"question": example.question, "context": example.context}
    if not with_gold:
        return texts
    answer = next(answer for answer in example.answers or () if answer.span is not None)
    assert answer.span is not None
    start, end = answer.span
    return texts | {"start": start, "answer": example.context[start:end]}
