# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A document with a hash of its own content, so that a reader notices a changed number."""

from __future__ import annotations

import hashlib
import json
from typing import Any

SHA256 = "sha256"  # the field with the hash


def digest(document: dict[str, Any]) -> str:
    """The sha256 of the document without its hash, as canonical JSON (sorted names, no spaces). Raises ValueError if a
    number is not finite."""
    content = {name: value for name, value in document.items() if name != SHA256}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
