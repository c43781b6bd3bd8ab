"""Learners of latent trees from information distances."""
from latentree.structure.chow_liu import chow_liu, mutual_information_tree
from latentree.structure.cl_grouping import cl_grouping
from latentree.structure.neighbor_joining import neighbor_joining
from latentree.structure.recursive_grouping import recursive_grouping
