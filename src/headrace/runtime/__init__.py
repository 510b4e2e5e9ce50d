"""Lifetimes: services and their supervision, signals, fault points. Knows nothing of tasks, stores or executors."""
