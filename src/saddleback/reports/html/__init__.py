"""A run as one page of HTML that can be opened, sent and shown: :func:`page_of`; what a solve keeps for it: :mod:`saddleback.runs.drawings_file`."""
