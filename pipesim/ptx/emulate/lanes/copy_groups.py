"""Groups of asynchronous copies: which lanes of a warp have copies that a commit or a wait leaves out."""

from dataclasses import dataclass


@dataclass
class CopyGroups:
    """Lanes of a warp with copies by one engine: ``issued`` since a wait for all, ``loose`` since a commit.

    Each lane has groups of its own (PTX ISA, "cp.async.commit_group", "cp.async.bulk.commit_group"); a warp is one
    agent with one row of groups. That is right as long as the lanes that commit and wait are those that copy.

    ``apart``: some lanes have committed a group that others have not.
    """

    issued: int = 0
    loose: int = 0
    apart: bool = False

    def issue(self, lanes: int) -> None:
        """These lanes copy."""
        self.issued |= lanes
        self.loose |= lanes

    def commit(self, lanes: int) -> bool:
        """Whether a commit of these lanes has all copies in it that no group has yet."""
        whole = not self.loose & ~lanes
        if whole:
            self.loose = 0
        self.apart = self.apart or bool(self.issued & ~lanes)
        return whole

    def wait(self, lanes: int, groups: int) -> bool:
        """Whether a wait of these lanes, for all groups but this many, is one for the copies of every lane."""
        whole = not self.issued & ~lanes and (not groups or not self.apart)
        if whole and not groups:
            self.issued, self.apart = self.loose, False
        return whole
