"""What an answer comes to in a sentence, made from its data: the last line of a report, and the words of its JSON."""
