"""What the test kit needs of an app. The App itself lies above this layer."""

from collections.abc import Mapping
from typing import Any, Protocol

from headrace.client.engine import Engine
from headrace.client.task import Task
from headrace.settings import Settings
from headrace.worker.application import Application


class TestedApp(Application, Protocol):
    """The public App as the test kit sees it."""

    __test__ = False  # pytest collects classes by their names

    settings: Settings
    name: str
    url: str
    store_url: str

    @property
    def engine(self) -> Engine: ...

    @property
    def registry(self) -> Mapping[str, Task[..., Any]]: ...

    def get_task(self, name: str) -> Task[..., Any]: ...
