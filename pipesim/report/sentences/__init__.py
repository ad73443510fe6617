"""The conclusion of an answer in a sentence, from its data: the last line of a report, and the words of its JSON."""
