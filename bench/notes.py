"""What the profile shows to be in the way of an aim: a sentence per measure, printed below the table."""

NOTES: dict[str, str] = {}
