"""The public functions and what they return: results that can show themselves. ``pipesim`` names them all.

``check``, ``verify``, ``simulate``, ``compare`` and ``show`` each take a function, a ``Protocol``, a ``Program``, a
name or a path, and return a frozen result that holds the answer's data.
"""
