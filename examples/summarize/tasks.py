"""The app of the workers and of the server: one task, `summarize`, with the policy of its preset."""

from headrace import App
from headrace.contrib.summarize import register

app = App("sqlite:///summarize.db", preset="asynctaskflow")

summarize = register(app)  # OPENROUTER_BASE_URL, OPENROUTER_MODEL, OPENROUTER_TIMEOUT; the key is read by the worker
