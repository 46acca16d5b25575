"""Files from strangers: every reader of weights and JSON that checks bytes before it trusts them. No Paddle here."""
