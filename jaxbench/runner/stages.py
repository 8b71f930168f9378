# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which stage of a point failed."""

from __future__ import annotations

from typing import Any

from jaxbench import discovery


class StageError(Exception):
    """A point failed; `stage` says where, the cause says why."""

    def __init__(self, stage: str):
        super().__init__(stage)
        self.stage = stage


class stage:
    """Names the stage in which an error happened, and the person's own line if it passed through one."""

    def __init__(self, name: str):
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception):
            raise StageError(self.name) from discovery.told(error)
