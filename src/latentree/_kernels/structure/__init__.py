"""Kernels of structure learners."""
