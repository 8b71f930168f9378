# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench launch`: starts the same command many times on a cluster, with the launcher that the cluster has.

A request (`request.py`) becomes one job for each node count, and an engine (`engines/`, one file each) hands it on.
Nothing here measures: the processes that start find each other as JAX does, and are the same `jaxbench run`.
"""
