"""Summaries of texts by a chat service: `summarize = register(app)` defines the task, `summarize.enqueue(content=…)`
uses it.

The service is anything that speaks the chat protocol of OpenAI (`POST {base}/chat/completions`, streamed). The key is
read from the environment by the worker, for each call, and is in no setting, record, log or error.
"""

from headrace.contrib.summarize.errors import (
    BrokenAnswer,
    NetworkTimeout,
    RateLimitError,
    ServiceRefused,
    ServiceUnavailable,
    UnexpectedStatus,
)
from headrace.contrib.summarize.settings import SummarizeSettings
from headrace.contrib.summarize.task import SERVICE, TASK, register

__all__ = [
    "SERVICE",
    "TASK",
    "BrokenAnswer",
    "NetworkTimeout",
    "RateLimitError",
    "ServiceRefused",
    "ServiceUnavailable",
    "SummarizeSettings",
    "UnexpectedStatus",
    "register",
]
