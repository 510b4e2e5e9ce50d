"""Claims tasks, runs them through executors, and writes what came of them, fenced.

Knows stores and executors by their contracts. Does not know the command line, HTTP or the public App.
"""
