"""The answers themselves: frozen dataclasses of names, numbers and quoted facts. Nothing here computes."""
