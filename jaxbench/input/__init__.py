# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The source of a step's batch: the devices, the host, or a pipeline that runs at the same time as the steps."""
