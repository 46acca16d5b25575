"""Multiple choice: a context, a question and options -> the right option.

Each option is an input of its own: [CLS] context [SEP] question option [SEP]. If the question has gaps, the option
fills them (RACE); if the context has a blank, the option fills it and is no second segment (ChID).

Shape letters: S samples, which are questions; O options; R options of all samples.
"""

from __future__ import annotations

import re
import string
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reader.batches.fields import Batch, Field
from reader.errors import quoted
from reader.system.arrays import Float32s, Int64s, offsets_of
from tasks.kinds.base import ANY_KIND, ENCODER_FIELDS, LABELS, Kind, Predictions
from tasks.kinds.checked_values import Reading, choice_of, id_of, text_of, texts_of
from tasks.kinds.features import Features, InputsBuilder, tokenize
from tasks.kinds.sentences import truncated_pair
from tasks.layouts.benchmarks import Race
from tasks.layouts.lines import JsonLines
from tasks.layouts.rows import ID, BadRow, CharSpan, Place, Role, Row

if TYPE_CHECKING:
    from reader.tokenization.tokenizer import Tokenizer

# Questions may have different numbers of options. Only options that exist are encoded.
OPTION_ROWS = Field("option_rows", "SO", "int64", "row of each option of a sample; padding: 0")
OPTION_COUNTS = Field("option_counts", "S", "int64", "number of options of each sample")
# A gap in a question: one underscore in RACE, or several.
GAP = re.compile("_+")
# Answers name options by the letters A to Z.
MAX_OPTIONS = len(string.ascii_uppercase)
# The texts of an option, see `_parts`.
NUM_PARTS = 5


@dataclass(frozen=True)
class MultipleChoiceExample:
    """A context, a question and at least two options, of which one is right.

    Attributes:
        question: may be empty, for example if the question is a blank in the context.
        answer: the index of the right option.
        group: examples of one group share their options, and each option is the answer of at most one of them (ChID
            with several blanks). None if the example stands alone.
        blank: the characters of the context that the option fills; a context longer than the model's input is to be
            cut around it. None if no option is to be inserted.
        has_gaps: whether each `_` in the question is a gap that the option fills (RACE).
    """

    id: str
    context: str
    question: str
    options: tuple[str, ...]
    answer: int | None
    place: Place
    group: str | None = None
    blank: CharSpan | None = None
    has_gaps: bool = False


@dataclass(frozen=True, eq=False)
class ChoiceFeatures(Features):
    """A sample is a question; its inputs and its units are its options. The gold value is the right option."""

    def batch(self, samples: Int64s) -> Batch:
        """Return the batch of some samples, with the rows and the number of the options."""
        counts = self.unit_offsets[samples + 1] - self.unit_offsets[samples]
        options_1O = np.arange(counts.max(initial=1))[np.newaxis]
        rows_SO = offsets_of(counts)[:-1, np.newaxis] + options_1O
        return super().batch(samples) | {
            OPTION_ROWS.name: np.where(options_1O < counts[:, np.newaxis], rows_SO, 0),
            OPTION_COUNTS.name: counts,
        }


class MultipleChoice(Kind[MultipleChoiceExample, ChoiceFeatures]):
    """The score of an option is its logit in a softmax over the options of the question."""

    name = "multiple_choice"
    # The answer is an index, or the text or the letter of an option.
    roles = (
        Role("context"),
        Role("question", needed=False),
        Role("options", is_list=True),
        Role("answer", is_gold=True),
        ID,
    )
    layouts = (*ANY_KIND, "race", "c3", "chid")
    metrics = ("accuracy", "accuracy_by_id", "race")
    submission = "squad"
    head = "tasks.kinds.networks.MultipleChoiceHead"
    num_scores = 1
    input_fields = ENCODER_FIELDS
    training_fields = (*ENCODER_FIELDS, OPTION_ROWS, OPTION_COUNTS, LABELS)

    @staticmethod
    def read_example(row: Row, default_id: str, reading: Reading) -> MultipleChoiceExample:
        """Return an example of a multiple choice; raises BadRow."""
        values = row.values
        options = texts_of(values.get("options"), "options", may_be_empty=not reading.own)
        if not 2 <= len(options) <= MAX_OPTIONS:
            raise BadRow(f"{len(options)} options; there may be 2 to {MAX_OPTIONS}")
        question = text_of(values.get("question", ""), "question", may_be_empty=True)
        answer = values.get("answer")
        if isinstance(reading.task.layout, JsonLines) and type(answer) is int:
            answer = str(answer)  # It may be the text of an option, as in a table.
        return MultipleChoiceExample(
            id=id_of(values, default_id),
            context=text_of(values.get("context"), "context"),
            question=question,
            options=options,
            answer=choice_of(answer, options) if reading.labelled else None,
            place=row.place,
            group=values.get("group"),
            blank=values.get("blank"),
            has_gaps=isinstance(reading.task.layout, Race) and GAP.search(question) is not None,
        )

    def encode(self, examples: Sequence[MultipleChoiceExample], tokenizer: Tokenizer, training: bool) -> ChoiceFeatures:
        """Return the features.

        If an input is too long, the longer segment loses tokens first. The context loses its last tokens, or those far
        from its blank. The second segment loses tokens of the question before those of the option.
        """
        texts = [part for example in examples for option in example.options for part in _parts(example, option)]
        table, builder = tokenize(tokenizer.encode_batch, texts), InputsBuilder(tokenizer.vocabulary)
        num_long = 0
        for number in range(0, len(texts), NUM_PARTS):
            before, filling, after, question, option = (table[number + part].ids for part in range(NUM_PARTS))
            first, second = len(before) + len(filling) + len(after), len(question) + len(option)
            room = self.settings.input.max_seq_len - 2 - bool(second)
            kept_first, kept_second = truncated_pair(first, second, room)
            kept_option = min(len(option), kept_second)
            kept_filling = min(len(filling), kept_first)
            kept_context = kept_first - kept_filling
            kept_after = min(len(after), max(kept_context // 2, kept_context - len(before)))
            kept_before = kept_context - kept_after
            builder.add(
                [before[len(before) - kept_before :], filling[:kept_filling], after[:kept_after]],
                [question[: kept_second - kept_option], option[:kept_option]] if second else None,
            )
            num_long += first + second > room
        answers = [example.answer for example in examples if example.answer is not None]
        offsets = offsets_of(np.array([len(example.options) for example in examples], np.int64))
        return ChoiceFeatures(
            inputs=builder.inputs(),
            input_offsets=offsets,
            unit_offsets=offsets,
            example_of=np.arange(len(examples)),
            counts={"truncated inputs": num_long},
            gold={LABELS.name: np.array(answers, np.int64)} if len(answers) == len(examples) else {},
        )

    def decode(
        self, scores: Float32s, features: ChoiceFeatures, examples: Sequence[MultipleChoiceExample]
    ) -> Predictions:
        """Return the index of the most probable option, the first of equal ones.

        Examples of a group get different options: those that have the greatest product of probabilities, as in CLUE's
        baseline for ChID.
        """
        # Imported late: they take a second.
        from scipy.optimize import linear_sum_assignment
        from scipy.special import softmax

        probabilities = [softmax(part) for part in np.split(scores[:, 0], features.unit_offsets[1:-1])]
        answers = [int(row.argmax()) for row in probabilities]
        groups: defaultdict[str, list[int]] = defaultdict(list)
        for index, example in enumerate(examples):
            if example.group is not None:
                groups[example.group].append(index)
        for members in groups.values():
            # With more examples than options, the least certain examples keep their own best options.
            log_probabilities = np.log(np.stack([probabilities[index] for index in members]).astype(np.float64) + 1e-38)
            for row, answer in zip(*linear_sum_assignment(-log_probabilities), strict=True):
                answers[members[row]] = int(answer)
        details = [{"probabilities": [float(value) for value in row]} for row in probabilities]
        return self.predictions(examples, answers, details)

    def answer_of(self, value: Any, example: MultipleChoiceExample) -> int:
        """Return the index of an option."""
        if type(value) is not int or not 0 <= value < len(example.options):
            raise BadRow(f"the answer {quoted(value)} is none of the {len(example.options)} options")
        return value

    def record(self, example: MultipleChoiceExample, answer: int, detail: Mapping[str, Any]) -> dict[str, Any]:
        """Return the choice, an index; the option, its text; and `probabilities` in the order of the options."""
        return {"choice": answer, "option": example.options[answer], **detail}

    def gold_value(self, example: MultipleChoiceExample) -> int | None:
        """Return the index of the right option."""
        return example.answer


def _parts(example: MultipleChoiceExample, option: str) -> tuple[str, ...]:
    """Return the five texts of an option: the context before its blank, what fills it, the context after it, the
    question, and the option if it fills neither. A context without a blank is one after a blank."""
    blank, context, question = example.blank or CharSpan(0, 0), example.context, example.question
    if example.has_gaps:
        # The spaces keep an option apart from the words around it.
        question = f" {option} ".join(GAP.split(question))
    filling = "" if example.blank is None else option
    last = "" if example.has_gaps or example.blank is not None else option
    return context[: blank.start], filling, context[blank.end :], question, last
