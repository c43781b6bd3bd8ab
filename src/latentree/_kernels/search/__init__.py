"""Kernels of refinement: local fits with messages held fixed."""
