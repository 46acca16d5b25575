#!/usr/bin/env bash
# nltk 3.10.4, nltk.lm.KneserNeyInterpolated of order 3 or more on padded text.
#
# Behaviour: after the start of a sentence the probabilities over the vocabulary sum to more than one: 1.0025 for <s>
# <s> with the default discount, 1.14 with a discount of 0.75, and 1.25 after one <s>. Contexts of words sum to 1.
#
# Why: the weight of the lower order counts all bigrams that begin with <s>, <s> <s> among them, but the continuations
# that it is divided by come from trigrams, and none ends in <s> <s>. padded_everygram_pipeline makes such bigrams. Why
# it surprises: order 2, and the other interpolated models of the module, sum to one. A perplexity that is too low for
# the first word of each sentence compares wrongly with another model, the more the shorter the sentences are.
#
# Output seen:
# sum over the vocabulary after: | <s> | <s> <s> | d <s> | a | a b | c d | nothing
# WittenBellInterpolated           order 3                    1.0000 1.0000 1.0000 1.0000 1.0000 1.0000 1.0000
# AbsoluteDiscountingInterpolated  order 3                    1.0000 1.0000 1.0000 1.0000 1.0000 1.0000 1.0000
# KneserNeyInterpolated            order 2                    1.0000 1.0000 1.0000 1.0000 1.0000 1.0000 1.0000
# KneserNeyInterpolated            order 3                    1.0333 1.0025 1.0333 1.0000 1.0000 1.0000 1.0000
# KneserNeyInterpolated            order 3 {'discount': 0.75} 1.2500 1.1406 1.2500 1.0000 1.0000 1.0000 1.0000
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check nltk==3.10.4
env/bin/python - <<'EOF'
from nltk.lm import AbsoluteDiscountingInterpolated, KneserNeyInterpolated, WittenBellInterpolated
from nltk.lm.preprocessing import padded_everygram_pipeline

TEXT = [line.split() for line in ("a b c a b d", "a c b a", "b a d c a b", "d a b c")]
CONTEXTS = [("<s>",), ("<s>", "<s>"), ("d", "<s>"), ("a",), ("a", "b"), ("c", "d"), ()]


def sums(kind, order, **options):
    grams, words = padded_everygram_pipeline(order, TEXT)
    model = kind(order, **options)
    model.fit(grams, words)
    found = [round(sum(model.score(word, context) for word in model.vocab), 4) for context in CONTEXTS]
    print(f"{kind.__name__:32s} order {order} {options or ''!s:18}", *(f"{total:6.4f}" for total in found))
    return found


print("sum over the vocabulary after:", *(" ".join(context) or "nothing" for context in CONTEXTS), sep=" | ")
others = [sums(kind, 3) for kind in (WittenBellInterpolated, AbsoluteDiscountingInterpolated)]
two, three = (sums(KneserNeyInterpolated, order) for order in (2, 3))
high = sums(KneserNeyInterpolated, 3, discount=0.75)
ones = [1.0] * len(CONTEXTS)
same = others == [ones, ones] and two == ones and three[:3] == [1.0333, 1.0025, 1.0333] and three[3:] == ones[3:]
raise SystemExit(0 if same and high[:2] == [1.25, 1.1406] else "the behaviour has changed")
EOF
