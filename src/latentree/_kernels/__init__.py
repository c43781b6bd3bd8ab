"""Compiled loops over plain arrays.

A module here takes arrays and returns arrays, and knows no type of ours. Everything is compiled
lazily, on the first call with given types, and cached on disk.
"""
