# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The devices of a process: fake CPU devices, pinning, meshes and the manifest."""
