# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A local package index: a folder of tiny wheels, for pip and uv alike."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Iterable
from pathlib import Path


def wheel(folder: Path, name: str, version: str, code: str, *, needs: Iterable[str] = ()) -> Path:
    """Writes a wheel of a package with one module of that name."""
    folder.mkdir(parents=True, exist_ok=True)
    about = f"{name}-{version}.dist-info"
    metadata = [
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}",
        *(f"Requires-Dist: {each}" for each in needs),
    ]
    files = {
        f"{name}.py": code,
        f"{about}/METADATA": "\n".join(metadata) + "\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    recorded = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        recorded += f"{path},sha256={digest},{len(text.encode())}\n"
    files[f"{about}/RECORD"] = f"{recorded}{about}/RECORD,,\n"
    made = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return made


def variables(index: Path, cache: Path) -> dict[str, str]:
    """The variables under which pip and uv see only `index`, and environments go into `cache`."""
    tools = {f"{tool}_{name}": value for tool in ("PIP", "UV") for name, value in _index(index).items()}
    return {**tools, "PIP_CONFIG_FILE": "/dev/null", "UV_NO_CONFIG": "1", "XDG_CACHE_HOME": str(cache)}


def _index(folder: Path) -> dict[str, str]:
    return {"FIND_LINKS": str(folder), "NO_INDEX": "1"}
