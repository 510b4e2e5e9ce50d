"""What probes are told."""

from pydantic import Field

from headrace.server.models.base import Shown


class Liveness(Shown):
    live: bool = True


class Readiness(Shown):
    ready: bool
    detail: str = Field(examples=["sqlite answers"])
