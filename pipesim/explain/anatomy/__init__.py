"""What a flat program consists of, read off its operations without running it: who signals whom, who touches what."""
