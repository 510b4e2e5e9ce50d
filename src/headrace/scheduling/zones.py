"""Time zones by their IANA names."""

from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones

from headrace.core.errors import OptionError

# `localtime` is another zone on another machine, and `right/` counts leap seconds, so its minutes are none of ours.
_REFUSED = ("localtime", "posixrules", "Factory")
_REFUSED_FOLDERS = ("posix/", "right/")


def zone_of(name: str) -> ZoneInfo:
    """The zone of that name. An unknown one is refused, with the names that are near."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"a time zone is given by its IANA name, as in tz='Europe/Berlin', not by {name!r}")
    if name not in _REFUSED and not name.startswith(_REFUSED_FOLDERS):
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):  # OSError: a folder such as «Europe»
            pass
    raise OptionError(f"unknown time zone {name[:80]!r}: {_advice(name[:80])}")


def _advice(name: str) -> str:
    names = {known.lower(): known for known in available_timezones()}
    word = name.lower().replace(" ", "_")
    if word in names:
        return f"names of zones are case-sensitive, write {names[word]!r}"
    # A city without its continent is the commonest slip, and too short to look like the whole name.
    cities = [known for lower, known in names.items() if word and lower.endswith("/" + word)]
    near = [names[lower] for lower in get_close_matches(word, names, n=3)]
    found = list(dict.fromkeys(sorted(cities) + near))[:3]
    if found:
        return f"did you mean {' or '.join(found)}?"
    return "give an IANA name such as 'Europe/Berlin', 'America/New_York' or 'UTC'"
