"""The list of what was done in whose name."""

from pydantic import Field

from headrace.server.models.base import Id, Instant, Json, Page, Shown


class AuditShown(Shown):
    id: Id
    at: Instant
    actor: str
    act: str = Field(examples=["tasks.retry"])
    subject: str = Field(examples=["task/17"])
    detail: Json
    request: str | None = Field(description="The id of the HTTP request")
    outcome: str | None = Field(description="`done`, or what went wrong; null: begun, and nobody said how it ended")


AuditPage = Page[AuditShown]
