"""Answers to a user's question, as frozen plain data: a verdict, a verification, a comparison.

Functions here compute; what they return is in ``views``. Reasons are data: ``report`` makes the sentences, ``cli`` the
exit codes.
"""
