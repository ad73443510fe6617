"""Corrections of a kernel's PTX: its lines, what is changed in them, and which branches led past what is missing."""
