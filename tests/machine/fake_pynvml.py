# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The part of `pynvml` that sets power limits, for two GPUs with their limits in a file: NVML_STATE."""

import json
import os
from pathlib import Path


class NVMLError(Exception):
    pass


def _state():
    return Path(os.environ["NVML_STATE"])


def nvmlInit():
    if not _state().exists():
        raise NVMLError("Driver Not Loaded")


def nvmlShutdown():
    pass


def nvmlDeviceGetCount():
    return 2


def nvmlDeviceGetHandleByIndex(index):
    return index


def nvmlDeviceGetUUID(handle):
    return f"GPU-{handle}"


def nvmlDeviceGetPowerManagementLimit(handle):
    return json.loads(_state().read_text())[handle]


def nvmlDeviceGetPowerManagementLimitConstraints(handle):
    return [200_000, 700_000]


def nvmlDeviceSetPowerManagementLimit(handle, milliwatts):
    if os.environ.get("NVML_DENIED"):
        raise NVMLError("Insufficient Permissions")
    limits = json.loads(_state().read_text())
    limits[handle] = milliwatts
    _state().write_text(json.dumps(limits))
