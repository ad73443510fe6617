"""Rules that PTX does not promise, tried on a GPU as often as it can: what was never seen there."""
