# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Removes private data from a card: home folders, user names, host names and paths.

This is the only place that removes private data. It changes:

- in every string: paths below the working folder and below the package become relative, and home folders become "~";
- in `PRIVATE` fields: the host's name, the user's name in a path or before an @, and every other absolute path except
  for its last part;
- environment variables with a name such as ADDRESS, HOST, USER or TOKEN: the value is removed.

Numbers and the names of fields never change.
"""

from __future__ import annotations

import getpass
import re
import socket
from pathlib import Path
from typing import Any

PRIVATE = frozenset({"command", "environment", "os", "reason", "detail", "notes"})  # free text, at any depth
REMOVED = "<removed>"
_SECRET = {
    "ADDRESS", "ADDRESSES", "HOST", "HOSTS", "HOSTNAME", "HOSTNAMES", "IP", "USER", "TOKEN", "KEY", "PASSWORD",
    "SECRET",
}  # fmt: skip
# A home folder, if nothing stands before it that makes it a part of another path, such as backup/home/ada.
_HOME = re.compile(r"(?<![\w.])/(?:root|(?:home|Users)/[^/\s\"':;,]+)(?=[/\s\"':;,)]|$)")
# An absolute path. After "~", ">" or ")" it is the rest of a path, and the beginning is redacted already.
_PATH = re.compile(r"(?<![\w.~/>)-])/(?:[\w.+@-]+/)+([\w.+@-]+)")


def redact(value: Any, *, private: bool = False) -> Any:
    """A copy of a JSON value without private data. private: whether it is inside one of the `PRIVATE` fields."""
    if isinstance(value, dict):
        return {
            name: REMOVED
            if private and isinstance(inner, str) and _SECRET & set(name.upper().split("_"))
            else redact(inner, private=private or name in PRIVATE)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact(inner, private=private) for inner in value]
    return redact_text(value, private=private) if isinstance(value, str) else value


def redact_text(string: str, *, private: bool = False) -> str:
    """One string without private data."""
    # Longest first, so that a folder inside another is replaced before it.
    # Not the home folder itself, even if that is the working folder: "~" says more than ".".
    folders = {str(Path.cwd()), str(Path(__file__).resolve().parents[3])} - {"/", str(Path.home())}
    for folder in sorted(folders, key=len, reverse=True):
        string = re.sub(rf"(?<![\w.]){re.escape(folder)}/", "", string)
        string = re.sub(rf"(?<![\w.]){re.escape(folder)}(?![\w.-])", ".", string)
    # After the folders above: they may lie in the home folder, and relative paths say more than "~".
    string = _HOME.sub("~", string)
    if not private:
        return string
    string = _PATH.sub(r".../\1", string)  # the last part stays: it names the experiment or the library
    host, user = socket.gethostname(), _user()
    if len(host) > 2 and host != "localhost":  # a shorter name would also match parts of ordinary words
        string = re.sub(rf"(?<![\w.]){re.escape(host)}(?![\w])", "<host>", string)
    return re.sub(rf"(?<=/){re.escape(user)}(?=/|$)|\b{re.escape(user)}(?=@)", "<user>", string) if user else string


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may have no entry for its user: OSError from Python 3.13 on
        return ""
