"""Answers to a user's question, as plain data: a verdict, a verification, a comparison. No text and no colour."""
