"""What the pipelines of both libraries share: pipeline state, values in registers, the iteration over tiles."""
