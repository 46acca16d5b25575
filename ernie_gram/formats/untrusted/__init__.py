"""Readers of weights and JSON in untrusted files, which check the bytes before they use them. No Paddle here."""
