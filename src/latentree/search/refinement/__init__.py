"""Refinement: local changes of a tree, judged by a penalised likelihood."""
