# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Python environments for releases of packages: the lock with other versions of some, kept in the user's cache.

release     words such as `jax==0.10.0`, and the versions that an index offers
needs       which packages a measurement imports
tools       uv and pip: resolve requirements, and install them
store       the environments in the cache, named by their contents
"""
