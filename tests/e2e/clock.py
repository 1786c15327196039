"""A clock that can be moved while a program runs: Debian's package `faketime`."""

from __future__ import annotations

from pathlib import Path

from skipping import skip


class Clock:
    """The time of day of the programs that are started with `variables`. Nobody else's moves."""

    def __init__(self, directory: Path) -> None:
        found = sorted(Path("/usr/lib").glob("**/faketime/libfaketimeMT.so.1"))
        if not found:
            skip("a moved clock, because the package faketime is not installed")
        self.library = found[0]
        self.file = directory / "clock"
        self.move("+0d")

    def move(self, offset: str) -> None:
        """Sets how far it is from the real one: `-3d` is three days ago."""
        draft = self.file.with_suffix(".draft")
        draft.write_text(f"{offset}\n")
        draft.rename(self.file)

    def variables(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(self.library),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1",
            # What waits for some seconds still does.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
