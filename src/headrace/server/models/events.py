"""Events over the wire: what tasks wait for that is no task."""

from typing import Annotated

from pydantic import Field, StringConstraints

from headrace.server.models.base import Given, Id, Instant, Json, Page, Shown


class NewEvent(Given):
    event: Annotated[str, StringConstraints(min_length=1, max_length=200)] = Field(examples=["payment.received"])
    key: Annotated[str, StringConstraints(max_length=200)] = Field(default="", examples=["order-17"])
    payload: Json = Field(default=None, examples=[{"amount": 12}])


class EventSent(Shown):
    id: Id


class EventShown(Shown):
    id: Id
    name: str = Field(examples=["payment.received"])
    key: str = Field(examples=["order-17"])
    payload: Json = Field(description="Secrets are taken out")
    created_at: Instant


EventPage = Page[EventShown]
