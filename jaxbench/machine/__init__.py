# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The devices of a process: how they are faked, pinned, arranged and described."""
