"""The types of what fixtures give."""

from collections.abc import Callable
from typing import Any

Call = Callable[..., Any]  #: carries something out, mostly a command
Make = Callable[..., Any]  #: makes something, mostly a file
