"""Terminal reports: plain dataclasses (``view``) in, lines of text out, painted on a rich console at the very end."""
