"""Wrong programs as named edits of right ones: of a ring and small protocols, of memory order, of larger kernels."""

from tests.support.mistakes.memory_mistakes import MEMORY_MISTAKES
from tests.support.mistakes.ring_mistakes import RING_MISTAKES
from tests.support.paths import ROOT

BROKEN = {name: each.wrong for name, each in RING_MISTAKES.items()}
MEMORY = {name: each.wrong for name, each in MEMORY_MISTAKES.items()}
#: A file of protocols that has all of them.
BROKEN_FILE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.support.mistakes import BROKEN, MEMORY
from tests.support.mistakes.ring import right_ring
from tests.support.mistakes.small import two_of_three
globals().update(BROKEN | MEMORY)
"""
