"""A flat program as a Promela model: SPIN, which knows nothing about this package, checks it for every schedule."""

from pipesim.formats.promela.text import search_depth, to_promela

__all__ = ["search_depth", "to_promela"]
