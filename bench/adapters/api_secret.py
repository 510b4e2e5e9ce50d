"""The token of the servers that are measured; their databases live as long as a run."""

SECRET = "hr_" + "benchmark" * 4 + "0000000"
