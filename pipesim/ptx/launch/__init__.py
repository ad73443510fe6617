"""One launch of a kernel: the shape and the arguments that a launch file gives beside the PTX (docs/launch-file.md)."""
