"""Raw text: finding and reading its files, computing its digest, and processing its segments in parallel."""
