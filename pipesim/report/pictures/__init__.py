"""Pictures of a protocol or a run: lanes, timelines, SVG."""
