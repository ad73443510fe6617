"""The version of pipesim that computes: documents name it, and a sweep mixes its answers with no other's."""

__version__ = "0.2.0"
