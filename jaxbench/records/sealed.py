# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A document that holds the hash of its own content, so that a changed number is seen when it is read."""

from __future__ import annotations

import hashlib
import json
from typing import Any

SHA256 = "sha256"  # the field


def digest(document: dict[str, Any]) -> str:
    """sha256 of the canonical JSON (sorted names, no spaces) of all but the hash. ValueError: not all is finite."""
    content = {name: value for name, value in document.items() if name != SHA256}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
