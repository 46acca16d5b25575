"""The list of all terms of the objective. Nothing else names them: a new term is a module, and an entry here."""

from __future__ import annotations

from collections.abc import Iterable

from ernie_gram.pretraining.config import ObjectiveConfig, PretrainConfig
from ernie_gram.pretraining.terms.comprehensive import Comprehensive
from ernie_gram.pretraining.terms.contiguous import Contiguous
from ernie_gram.pretraining.terms.explicit import Explicit
from ernie_gram.pretraining.terms.generator import Generator
from ernie_gram.pretraining.terms.replaced_tokens import ReplacedTokens
from ernie_gram.pretraining.terms.term import Term
from reader.batches import fields
from reader.batches.fields import Field

# In the order in which their parameters are made and their losses are logged.
TERMS: list[Term] = [Contiguous(), Explicit(), Comprehensive(), Generator(), ReplacedTokens()]


def terms_of(objective: ObjectiveConfig) -> list[Term]:
    """Return the terms with a positive weight."""
    return [term for term in TERMS if term.weight(objective)]


def evaluated(objective: ObjectiveConfig) -> list[Term]:
    """Return the terms of which evaluation reports something."""
    return [term for term in terms_of(objective) if term.num_sums]


def fields_of(terms: Iterable[Term]) -> tuple[Field, ...]:
    """Return the batch fields that the encoders and some terms read."""
    encoded = (fields.INPUT_IDS, fields.LENGTHS, fields.SLOTS)
    return tuple(dict.fromkeys([*encoded, *(field for term in terms for field in term.fields)]))


def sparse_parameters(config: PretrainConfig) -> frozenset[str]:
    """Return the names of parameters of which a step uses few rows (see training.job.Job)."""
    return frozenset().union(*(term.sparse_parameters(config) for term in terms_of(config.objective)))
