"""What a driver of the machine tells whoever watches it."""

from __future__ import annotations

from typing import Protocol

from pipesim.model.machine import Flight, State, Step


class Observer(Protocol):
    """Watches a run and changes nothing."""

    def stepped(self, before: State, agent: int, result: Step) -> None:
        """An agent was asked to move from ``before``: it did, or it was blocked."""

    def landed(self, flight: Flight, nbytes: int, result: Step) -> None:
        """A transfer delivered ``nbytes``, or its arrival."""
