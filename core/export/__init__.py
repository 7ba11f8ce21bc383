"""Exports for other programs: CSV, TensorBoard event files, weights, a Hugging Face folder.

`export` does it, `kinds` lists them. Nothing here touches what the run's host writes; a live run is exported as far
as it is.
"""
