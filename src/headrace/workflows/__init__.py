"""Compositions of tasks: what is to run after what, and whose result goes where.

Pure planning: a composition becomes a plan, a sequence of tasks with their edges, before anything is written. It knows
tasks by a small protocol (`base.SignedTask`) and nothing of clients, connections or workers.
"""

from headrace.workflows.compose import approve, chain, chord, group, map, starmap
from headrace.workflows.graph import Graph, Node
from headrace.workflows.signatures import Signature

__all__ = ["Graph", "Node", "Signature", "approve", "chain", "chord", "group", "map", "starmap"]
