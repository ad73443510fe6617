"""One self-contained page: timelines on a canvas, a counterexample to step through, the report, the source lines."""
