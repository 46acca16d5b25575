"""From official files to examples: which files a split has, and what each row must be."""
