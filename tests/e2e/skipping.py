"""Checks that this machine lacks something for."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def skip(reason: str) -> NoReturn:
    """Skips the check and says so, except in CI, where nothing may be missing."""
    assert not os.environ.get("CI"), f"CI must not skip this: {reason}"
    print(f"skipped: {reason}")
    pytest.skip(reason)


def skip_even_in_ci(reason: str) -> NoReturn:
    """Does the same everywhere, for a program that no package and no registry has. pytest's summary says it."""
    pytest.skip(reason)
