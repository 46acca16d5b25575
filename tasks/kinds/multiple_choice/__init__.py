"""Multiple choice: a context, a question and options -> the right option."""
