"""A large graph as few groups: siblings that run the same and wait for the same are one. Pure.

A group is made of a name and of the groups that its tasks wait for, each with the kind of the edge. So a fan-out of a
hundred thousand is one group, and a thousand chains side by side are as many groups as one chain has links.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.core.states import TERMINAL

# (id, name, state, start, end): instants in seconds since 1970
type Bone = tuple[int, str, str, float | None, float | None]
type Joint = tuple[int, int, int]  # (task, upstream, kind): 0 on_success, 1 on_done, 2 on_failure
_NOTHING, _MANY = -1, -2  # in place of an edge
_NONE: dict[int, int] = {}
_OVER = tuple(state.value for state in TERMINAL)


@dataclass(slots=True)
class Group:
    """`name` is None where tasks of several names were put together."""

    name: str | None
    level: int
    members: list[int] = field(default_factory=list[int])  # by id


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """Groups in an order in which each comes after those that it waits for, and edges between their places."""

    groups: list[Group]
    edges: Counter[tuple[int, int, int]]  # (group, upstream, kind) to how many edges between tasks
    place_of: dict[int, int]  # of each task
    is_merged: bool  # there were more groups than are wanted


@dataclass(slots=True)
class Tally:
    """What became of the tasks of one group. Seconds, and seconds since 1970."""

    states: dict[str, int] = field(default_factory=dict[str, int])
    began: float | None = None
    ended: float | None = None  # of the last; None while one of them has not ended
    ran: int = 0  # those that took a time
    total: float = 0.0
    longest: float = 0.0
    failed: int | None = None  # one that did


def tallied(structure: Structure, bones: Sequence[Bone]) -> list[Tally]:
    """By the places of the groups. A task that is in none of them, because it came later, is left out."""
    tallies = [Tally() for _ in structure.groups]
    place_of = structure.place_of
    for (place, state), n in Counter([(place_of.get(bone[0], -1), bone[2]) for bone in bones]).items():
        if place >= 0:
            tallies[place].states[state] = n
    last = [0.0] * len(tallies)
    for task, _, state, start, end in bones:
        if (start is None and end is None) or (place := place_of.get(task, -1)) < 0:
            continue
        tally = tallies[place]
        if start is not None:
            if tally.began is None or start < tally.began:
                tally.began = start
            if end is not None:
                took = end - start if end > start else 0.0
                tally.ran += 1
                tally.total += took
                if took > tally.longest:
                    tally.longest = took
        if end is not None:
            if end > last[place]:
                last[place] = end
            if state == "failed" and tally.failed is None:
                tally.failed = task
    for tally, group, end in zip(tallies, structure.groups, last, strict=True):
        over = sum(tally.states.get(state, 0) for state in _OVER)
        tally.ended = end if end and over >= len(group.members) else None
    return tallies


def grouped(bones: Sequence[Bone], joints: Sequence[Joint], *, most: int) -> Structure:
    """What leads to a task of another job is left out, and to one that was added after the tasks were read."""
    names = {bone[0]: bone[1] for bone in bones}
    if not names.keys() >= {joint[0] for joint in joints} or not names.keys() >= {joint[1] for joint in joints}:
        joints = [joint for joint in joints if joint[0] in names and joint[1] in names]
    made = _by_what_they_wait_for(names, joints)
    return made if len(made.groups) <= most else _by_level(made, most)


def _by_what_they_wait_for(names: dict[int, str], joints: Sequence[Joint]) -> Structure:
    """An edge is one number here, the upstream's id or group and the kind: a hundred thousand tuples would take most of
    the time."""
    one = {task: upstream << 2 | kind for task, upstream, kind in joints}
    many: dict[int, list[int]] = {}
    if len(one) < len(joints):
        many = {task: [] for task, n in Counter([joint[0] for joint in joints]).items() if n > 1}
        one |= dict.fromkeys(many, _MANY)
        for task, upstream, kind in joints:
            if one[task] == _MANY:
                many[task].append(upstream << 2 | kind)
    known: dict[str, dict[int | frozenset[int], int]] = {}
    groups: list[Group] = []
    members: list[list[int]] = []
    place_of: dict[int, int] = {}
    edges: Counter[tuple[int, int, int]] = Counter()
    for task in _in_order(names, joints):
        edge = one.get(task, _NOTHING)
        ends: dict[int, int] = _NONE
        if edge >= 0:
            key = place_of[edge >> 2] << 2 | edge & 3
        elif edge == _NOTHING:
            key = _NOTHING
        else:
            ends = Counter([place_of[each >> 2] << 2 | each & 3 for each in many[task]])
            key = frozenset(ends)
        name = names[task]
        alike = known.get(name)
        if alike is None:
            alike = known[name] = {}
        place = alike.get(key)
        if place is None:
            place = alike[key] = len(groups)
            groups.append(Group(name, _level(groups, key)))
            members.append(groups[place].members)
        members[place].append(task)
        place_of[task] = place
        for end, n in ends.items():
            edges[place, end >> 2, end & 3] += n
    for each in members:
        each.sort()  # walked edges come in an order of their own
    for alike in known.values():
        for end, place in alike.items():
            if isinstance(end, int) and end != _NOTHING:
                edges[place, end >> 2, end & 3] += len(members[place])
    return Structure(groups=groups, edges=edges, place_of=place_of, is_merged=False)


def _level(groups: Sequence[Group], ends: int | frozenset[int]) -> int:
    if ends == _NOTHING:
        return 0
    return 1 + max(groups[end >> 2].level for end in ((ends,) if isinstance(ends, int) else ends))


def _in_order(names: dict[int, str], joints: Sequence[Joint]) -> list[int]:
    """Each after those that it waits for. By their ids, as a rule, since they are written in that order; where one was
    added later than what waits for it, by walking the edges."""
    by_id = sorted(names)
    if all(task > upstream for task, upstream, _ in joints):
        return by_id
    left = Counter([joint[0] for joint in joints])
    below: dict[int, list[int]] = {}
    for task, upstream, _ in joints:
        below.setdefault(upstream, []).append(task)
    ready = [task for task in by_id if task not in left]
    for task in ready:  # grows as it is walked
        for other in below.get(task, ()):
            left[other] -= 1
            if not left[other]:
                ready.append(other)
    return ready


def _by_level(made: Structure, most: int) -> Structure:
    """Put together what has the same name on neighbouring levels, more of these with each try; at last whatever is on
    them. Edges go from lower levels to higher ones, so that there is no circle."""
    deepest = max(group.level for group in made.groups)
    width = 1
    by_name = True
    while True:
        keys = [(group.name if by_name else None, group.level // width) for group in made.groups]
        distinct = dict.fromkeys(keys)
        if len(distinct) <= most:
            break
        if width > deepest:
            by_name, width = False, 1
        else:
            width *= 2
    order = sorted(distinct, key=lambda key: key[1])
    places = {key: place for place, key in enumerate(order)}
    groups = [Group(name, level * width) for name, level in order]
    moved = [places[key] for key in keys]
    for place, group in zip(moved, made.groups, strict=True):
        groups[place].members += group.members
    for group in groups:
        group.members.sort()
    edges: Counter[tuple[int, int, int]] = Counter()
    for (group, upstream, kind), n in made.edges.items():
        lower, upper = moved[upstream], moved[group]
        if groups[lower].level < groups[upper].level:
            edges[upper, lower, kind] += n
    place_of = {task: moved[place] for task, place in made.place_of.items()}
    return Structure(groups=groups, edges=edges, place_of=place_of, is_merged=True)
