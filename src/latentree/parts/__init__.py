"""Rows too many for one table: a fixed sequence of tables, and sums over them in a fixed order."""

from latentree.parts.pieces import LocalPieces, Pieces, add_up
from latentree.parts.rows import Parts, cut_table, part_rows

__all__ = ["LocalPieces", "Parts", "Pieces", "add_up", "cut_table", "part_rows"]
