#!/usr/bin/env bash
# transformers 4.57.1, squad_evaluate (it follows the official script of SQuAD 2.0): best_exact and best_f1.
#
# Behaviour: where questions have the same no-answer probability, the search for the best threshold counts them one by
# one, in the order of the file, and takes the best partial sum. The score it names is then reached by no threshold, not
# even by the one printed beside it, and another order of the same file gives another "best".
#
# Why it surprises: best_exact is reported as what the best threshold attains. Ties are the rule where a model saturates
# at 0 or 1, and a file of probabilities that are all equal is valid. Here 50 % is all that can be reached. Way round:
# search over the distinct probabilities.
#
# Output seen:
# exact at every threshold: [50.0]
# best_exact  50.0 in  8 of 24 orders of the file, such as q3 q1 q4 q2
# best_exact  75.0 in 12 of 24 orders of the file, such as q1 q3 q2 q4
# best_exact 100.0 in  4 of 24 orders of the file, such as q1 q2 q3 q4
# best_exact_thresh of q1 q2 q3 q4: 1e-09
# exact at that threshold: 50.0
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check transformers==4.57.1 numpy==2.4.6
HF_HUB_OFFLINE=1 env/bin/python -W ignore - 2>errors.txt <<'EOF' || { cat errors.txt; exit 1; }
from itertools import permutations

from transformers import SquadExample
from transformers.data.metrics.squad_metrics import squad_evaluate

# Two questions with an answer and two without; the model answers all four and is nowhere in doubt.
answers = {"q1": "red", "q2": "blue", "q3": None, "q4": None}
predictions = {"q1": "red", "q2": "blue", "q3": "green", "q4": "green"}
no_answer = dict.fromkeys(answers, 1e-9)


def evaluate(order, threshold=1.0):
    gold = {name: [{"text": text}] if text else [] for name, text in answers.items()}
    examples = [
        SquadExample(name, "which?", "red blue green", None, None, "", gold[name], is_impossible=not gold[name])
        for name in order
    ]
    ordered = {name: no_answer[name] for name in order}
    return squad_evaluate(examples, predictions, ordered, no_answer_probability_threshold=threshold)


reachable = {evaluate(answers, threshold)["exact"] for threshold in (-1.0, 0.0, 1e-10, 1e-9, 0.5, 1.0)}
found = {order: evaluate(order)["best_exact"] for order in permutations(answers)}
print("exact at every threshold:", sorted(reachable))
for score in sorted(set(found.values())):
    orders = [order for order in found if found[order] == score]
    print(f"best_exact {score:5.1f} in {len(orders):2d} of {len(found)} orders of the file, such as", *orders[0])
print("best_exact_thresh of q1 q2 q3 q4:", evaluate(answers)["best_exact_thresh"])
at = evaluate(answers, evaluate(answers)["best_exact_thresh"])["exact"]
print("exact at that threshold:", at)
same = reachable == {50.0} and set(found.values()) == {50.0, 75.0, 100.0} and at == 50.0
raise SystemExit(0 if same else "the behaviour has changed")
EOF
