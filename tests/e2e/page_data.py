"""The data in a page."""

from __future__ import annotations

import base64
import re
import zlib


def packed_in(page: str) -> str:
    """The data of a page: columns, and the texts of names."""
    packed = re.search(r'id="data"[^>]*>([^<]+)<', page)[1]
    return zlib.decompress(base64.b64decode(packed)).decode("latin-1")
