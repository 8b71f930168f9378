# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Worker processes: their server and client, process groups, and launches on several hosts."""
