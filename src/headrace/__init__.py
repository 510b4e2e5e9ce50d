"""Headrace: one durable task engine for Python, on SQLite or PostgreSQL."""
