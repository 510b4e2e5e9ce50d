"""Every screen, once: where it is, as whom it is looked at, and what has to be done before it is all there."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.browser.browsing import Browsing, Scheme, heading, settled
from tests.browser.driver import Page, expect
from tests.browser.scene import Scene


async def _nothing(page: Page) -> None:
    """It is all there by itself."""


def _tab(title: str) -> Callable[[Page], Awaitable[None]]:
    async def choose(page: Page) -> None:
        await page.get_by_role("tab", name=re.compile(f"^{title}")).click()

    return choose


def _press(name: str) -> Callable[[Page], Awaitable[None]]:
    async def press(page: Page) -> None:
        await page.get_by_role("button", name=name).click()

    return press


def _keys(keys: str, dialog: str) -> Callable[[Page], Awaitable[None]]:
    async def press(page: Page) -> None:
        await page.keyboard.press(keys)
        await expect(page.get_by_role("dialog", name=dialog)).to_be_visible()

    return press


async def _choose_all(page: Page) -> None:
    await page.get_by_role("checkbox", name=re.compile("^Select all")).check()


async def _first_group(page: Page) -> None:
    await page.get_by_role("table", name="Dead letters by error").get_by_role("link").first.click()
    await expect(page.get_by_role("heading", name="The failure")).to_be_visible()


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    name: str
    address: Callable[[Scene], str]
    title: str
    person: str | None = "ada"
    then: Callable[[Page], Awaitable[None]] = _nothing
    leads_to: str | None = None  # where `then` has gone


def _screen(
    name: str,
    address: str,
    title: str,
    *,
    person: str | None = "ada",
    then: Callable[[Page], Awaitable[None]] = _nothing,
    leads_to: str | None = None,
) -> Screen:
    """`address` may name what is in the scene: "/tasks/{failed}"."""

    def filled(scene: Scene) -> str:
        return address.format_map({each: getattr(scene, each) for each in Scene.__slots__})

    return Screen(name=name, address=filled, title=title, person=person, then=then, leads_to=leads_to)


SCREENS: tuple[Screen, ...] = (
    _screen("overview", "/", "Overview"),
    _screen("overview-user", "/", "Overview", person="uma"),
    _screen("queues", "/queues", "Queues"),
    _screen("queues-one", "/queues/mail", "mail"),
    _screen("queues-viewer", "/queues/orders", "orders", person="vera"),
    _screen("tasks", "/tasks", "Tasks"),
    _screen("tasks-search", "/tasks?q=state:failed+error:TimeoutError", "Tasks"),
    _screen("tasks-chosen", "/tasks?q=queue:orders", "Tasks", then=_choose_all),
    _screen("tasks-none", "/tasks?q=name:no.such.task", "Tasks"),
    _screen("tasks-viewer", "/tasks", "Tasks", person="vera"),
    _screen("task", "/tasks/{completed}", "mail.welcome"),
    _screen("task-failed", "/tasks/{failed}", "orders.charge"),
    _screen("task-running", "/tasks/{running}", "catalogue.load"),
    _screen("task-retrying", "/tasks/{retrying}", "mail.newsletter"),
    _screen("task-waiting", "/tasks/{parked}", "orders.ship"),
    _screen("task-approval", "/tasks/{refund}", "orders.refund", person="oskar"),
    _screen("task-in-a-job", "/tasks/{shrink}", "images.shrink"),
    _screen("task-clear", "/tasks/{shrink}", "images.shrink", then=_press("Clear with what follows")),
    _screen("task-new", "/tasks/new", "New task"),
    _screen("task-new-form", "/tasks/new?name=mail.welcome", "mail.welcome"),
    _screen("task-new-lists", "/tasks/new?name=orders.place", "orders.place", then=_press("Add one to articles")),
    _screen("task-new-command", "/tasks/new?command", "New command"),
    _screen("task-edit", "/tasks/{completed}/edit", "Edit and enqueue again"),
    _screen("jobs", "/jobs", "Jobs"),
    _screen("job", "/jobs/{album}", "summer album"),
    _screen("job-running", "/jobs/{going}", "winter album"),
    _screen("job-failed", "/jobs/{broken}", "spring album"),
    _screen("job-tasks", "/jobs/{album}?tab=tasks", "summer album"),
    _screen("job-gantt", "/jobs/{album}?tab=gantt", "summer album"),
    _screen("job-logs", "/jobs/{going}?tab=logs", "winter album"),
    _screen("job-events", "/jobs/{album}?tab=events", "summer album"),
    _screen("job-details", "/jobs/{album}?tab=details", "summer album"),
    _screen("job-add", "/jobs/{going}", "winter album", then=_press("Add a task")),
    _screen("dead-letters", "/dead-letters", "Dead letters"),
    _screen("dead-letters-group", "/dead-letters", "Dead letters", then=_first_group, leads_to="/dead-letters/1"),
    _screen("schedules", "/schedules", "Schedules"),
    _screen("schedules-one", "/schedules/report-south", "report-south"),
    _screen("schedules-new", "/schedules?new=yes", "Schedules"),
    _screen("schedules-edit", "/schedules/report-south?edit=yes", "report-south"),
    _screen("approvals", "/approvals", "Approvals", person="oskar"),
    _screen("workers", "/workers", "Workers"),
    _screen("workers-one", "/workers/{worker}", ""),
    _screen("breakers", "/breakers", "Breakers"),
    _screen("breakers-one", "/breakers/postmaster", "postmaster"),
    _screen("breakers-open", "/breakers", "Breakers", then=_press("Open one by hand…")),
    _screen("accounts", "/accounts", "Users and tokens"),
    _screen("accounts-tokens", "/accounts?tab=tokens", "Users and tokens"),
    _screen("accounts-logins", "/accounts?tab=logins", "Users and tokens"),
    _screen("accounts-mine", "/accounts?tab=mine", "Tokens", person="oskar"),
    _screen("accounts-one", "/accounts/oskar", "oskar"),
    _screen("accounts-new-user", "/accounts", "Users and tokens", then=_press("New user")),
    _screen("accounts-new-token", "/accounts?tab=mine", "Users and tokens", then=_press("New token")),
    _screen("audit", "/audit", "Audit log"),
    _screen("login", "/tasks", "Log in to Headrace", person=None),
    _screen("palette-open", "/queues", "Queues", then=_keys("Control+k", "Commands")),
    _screen("keys-open", "/tasks", "Tasks", then=_keys("?", "Keys")),
    _screen("not-found", "/no/such/place", "Not found"),
)


async def show(
    browsing: Browsing, screen: Screen, scene: Scene, *, scheme: Scheme = "light", size: tuple[int, int]
) -> Page:
    """The screen as it is when all of it is there. Nothing moves any more but what is live."""
    if screen.person is None:
        browsing.complaints.forgive("status of 401")
    page = await browsing.open(screen.address(scene), screen.person, scheme=scheme, size=size, reduced_motion=True)
    await expect(heading(page, re.compile(screen.title))).to_be_visible()
    await settled(page)
    await screen.then(page)
    await settled(page)
    return page
