import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { createMemoryRouter, RouterProvider } from "react-router";
import { beforeEach, expect, it, vi } from "vitest";

import { LiveContext, LiveHub, useLive } from "@/live";
import { admin, AnsweringServer, user, viewer } from "@/testing/page";
import { Page } from "@/ui";

import type { Panel } from "./panel";
import type { Session } from "./roles";
import { routesOf } from "./routes";
import { usePageShortcuts } from "./shortcuts";

let pressed: string[] = [];

function Home() {
  useLive({ kind: "system" }, "system");
  usePageShortcuts([{ keys: "n", title: "New fruit", run: () => pressed.push("new") }]);
  return <Page title="Home">welcome</Page>;
}

const PANELS: readonly Panel[] = [
  {
    id: "home",
    path: "",
    title: "Home",
    icon: () => null,
    group: "observe",
    order: 1,
    routes: [{ index: true, lazy: () => Promise.resolve({ Component: Home }) }],
    shortcuts: [{ keys: "g h", title: "Go home", run: ({ navigate }) => void navigate("/") }],
  },
  {
    id: "fruits",
    path: "fruits",
    title: "Fruits",
    icon: () => null,
    group: "work",
    order: 1,
    access: { overseer: true },
    routes: [{ index: true, lazy: () => Promise.resolve({ Component: () => <Page title="Fruits">apples</Page> }) }],
    shortcuts: [{ keys: "g f", title: "Go to fruits", run: ({ navigate }) => void navigate("/fruits") }],
    commands: (session) => [{ id: "peel", title: `Peel as ${session.name}`, run: () => pressed.push("peeled") }],
  },
  {
    id: "secrets",
    path: "secrets",
    title: "Secrets",
    icon: () => null,
    group: "administer",
    order: 1,
    access: { role: "admin" },
    routes: [{ index: true, lazy: () => Promise.resolve({ Component: () => <Page title="Secrets">hidden</Page> }) }],
  },
];

type Socket = { onopen?: () => void; onclose?: (event: { code: number; reason: string }) => void };

function open(at = "/", session: Session = admin) {
  const sockets: Socket[] = [];
  vi.stubGlobal("fetch", new AnsweringServer({ "GET /api/v1/session": session }).fetch);
  const live = new LiveHub({
    open: () => {
      const socket = { close: () => undefined } as Socket;
      sockets.push(socket);
      return socket as unknown as WebSocket;
    },
    after: () => 1,
    forget: () => undefined,
    now: Date.now,
    random: () => 0,
  });
  const router = createMemoryRouter(routesOf(PANELS), { initialEntries: [at] });
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <LiveContext value={live}>
        <RouterProvider router={router} />
      </LiveContext>
    </QueryClientProvider>,
  );
  return { router, sockets };
}

beforeEach(() => {
  pressed = [];
  vi.spyOn(window, "scrollTo").mockImplementation(() => undefined);
});

it.each([
  [admin, ["Home", "Fruits", "Secrets"]],
  [viewer, ["Home", "Fruits"]],
  [user, ["Home"]],
])("leads to what the role allows", async (session, titles) => {
  open("/", session);
  const navigation = await screen.findByRole("navigation", { name: "Main" });
  expect(within(navigation).getAllByRole("link").map((link) => link.textContent)).toEqual([...titles, "API"]);
});

it("tells who opens a page that their role forbids, and does not show it", async () => {
  open("/secrets", viewer);
  expect(await screen.findByText("Your role does not reach this")).toBeVisible();
  expect(screen.queryByText("hidden")).toBeNull();
});

it("says that there is nothing at an address", async () => {
  open("/nowhere");
  expect(await screen.findByText("There is nothing at this address")).toBeVisible();
});

it("goes by keys, and lists them", async () => {
  const { router } = open();
  await screen.findByText("welcome");
  await userEvent.keyboard("n");
  expect(pressed).toEqual(["new"]);
  await userEvent.keyboard("?");
  const keys = screen.getByRole("dialog", { name: "Keys" });
  expect(keys).toHaveTextContent("New fruit");
  expect(keys).toHaveTextContent("Go to fruits");
  await userEvent.click(within(keys).getByRole("button", { name: "Close" }));
  await userEvent.keyboard("gf");
  expect(router.state.location.pathname).toBe("/fruits");
  expect(await screen.findByText("apples")).toBeVisible();
  await userEvent.keyboard("n");
  expect(pressed).toEqual(["new"]);
});

it("finds pages and commands with the palette, and closes it when one is run", async () => {
  const { router } = open();
  await screen.findByText("welcome");
  await userEvent.keyboard("{Control>}k{/Control}");
  const box = screen.getByRole("combobox");
  await userEvent.type(box, "peel");
  expect(screen.getAllByRole("option").map((option) => option.textContent)).toEqual(["Peel as ada", "Search tasks for “peel”"]);
  await userEvent.keyboard("{Enter}");
  expect(pressed).toEqual(["peeled"]);
  expect(screen.queryByRole("combobox")).toBeNull();
  await userEvent.keyboard("/");
  await userEvent.type(screen.getByRole("combobox"), "1702{ArrowDown}{Enter}");
  expect(router.state.location.pathname).toBe("/jobs/1702");
});

it("searches tasks for what is no command", async () => {
  const { router } = open();
  await screen.findByText("welcome");
  await userEvent.keyboard("/");
  await userEvent.type(screen.getByRole("combobox"), "error:Timeout queue:mail{Enter}");
  expect(router.state.location.pathname + router.state.location.search).toBe("/tasks?q=error%3ATimeout%20queue%3Amail");
});

it("says that it reconnects, until it is connected", async () => {
  const { sockets } = open();
  await screen.findByText("welcome");
  expect(screen.queryByText(/Reconnecting/)).toBeNull();
  act(() => sockets.at(-1)?.onclose?.({ code: 1006, reason: "" }));
  expect(screen.getByText(/Reconnecting/)).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Try now" }));
  act(() => sockets.at(-1)?.onopen?.());
  expect(screen.queryByText(/Reconnecting/)).toBeNull();
});

it("changes the theme and keeps it", async () => {
  open();
  await userEvent.click(await screen.findByRole("button", { name: /^Theme: as the system/ }));
  expect(document.documentElement.dataset["theme"]).toBe("dark");
  expect(localStorage.getItem("headrace.theme")).toBe("dark");
  await userEvent.click(screen.getByRole("button", { name: /^Theme: dark/ }));
  expect(document.documentElement.dataset["theme"]).toBe("light");
  await userEvent.click(screen.getByRole("button", { name: /^Theme: light/ }));
  expect(localStorage.getItem("headrace.theme")).toBeNull();
});
