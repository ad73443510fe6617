"""The two encodings of format 2: the bits of a full tag, and the running hash of the sites."""

from functools import reduce

import numpy as np
import pytest

from hwkernels.records import encodings as form
from hwkernels.records.encodings import (
    Flag,
    first_gap,
    full_tag,
    hash_step,
)

FIELDS = (form.FULL_SITE, form.FULL_FLAGS, form.FULL_SEQUENCE)


def test_the_fields_of_a_full_tag_fill_it_without_overlapping():
    bits = [bit for shift, width in FIELDS for bit in range(shift, shift + width)]
    assert bits == list(range(32))
    assert sum(Flag) == (1 << form.FULL_FLAGS[1]) - 1


@pytest.mark.parametrize(("site", "flags"), [(4095, 0), (-1, 0), (0, 16), (0, -1)])
def test_what_has_no_room_is_refused(site, flags):
    with pytest.raises(ValueError, match="no tag"):
        full_tag(site, flags, 0)


@pytest.mark.parametrize(
    ("planted", "row"),
    [
        (lambda s: s, None),
        (lambda s: s[:0], None),
        (lambda s: np.delete(s, 7), 7),
        (lambda s: np.insert(s, 7, s[7]), 8),
        (lambda s: np.concatenate([s[:3], s[[4, 3]], s[5:]]), 3),
        (lambda s: np.delete(s, range(100, 100 + form.SEQUENCE_PERIOD)), None),  # as documented
        (lambda s: np.delete(s, range(100, 99 + form.SEQUENCE_PERIOD)), 100),
    ],
)
def test_a_lost_or_moved_record_leaves_a_gap(planted, row):
    right = np.arange(form.SEQUENCE_PERIOD + 200) % form.SEQUENCE_PERIOD
    assert first_gap(planted(right)) == row


def test_the_hash_is_the_one_that_is_written_down():
    assert hash_step(form.HASH_START, 0) == 1
    assert hash_step(1, 1) == 0x9E3779B1 + 2
    assert reduce(hash_step, (3, 1, 4), form.HASH_START) == (4 * 0x9E3779B1**2 + 2 * 0x9E3779B1 + 5) % 2**32
