import { focusManager, useQuery } from "@tanstack/react-query";
import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it, vi } from "vitest";

import { api, call } from "@/api";
import { LiveHub } from "@/live";
import { admin, problem, renderPage, viewer } from "@/testing/page";
import { useConfirm } from "@/ui";

import { Allowed, useLogOut, useSession } from "./session";

const LOCKED = "the name or the password is wrong; after 5 wrong ones in a row nobody can log in by that name for 15 minutes";

function Somebody() {
  const session = useSession();
  const logOut = useLogOut();
  return (
    <>
      <p>here is {session.name || "anybody"}</p>
      <Allowed role="operator">
        <button type="button">Pause</button>
      </Allowed>
      <button type="button" onClick={() => logOut.mutate()}>
        Out
      </button>
    </>
  );
}

it("shows the login to nobody, and what the server says of a wrong password", async () => {
  let tries = 0;
  const { server } = renderPage(<Somebody />, {
    session: null,
    answers: { "POST /api/v1/session": () => (++tries === 1 ? problem(401, "Unauthorized", LOCKED) : admin) },
  });
  await userEvent.type(await screen.findByLabelText("Name"), "ada");
  await userEvent.type(screen.getByLabelText("Password"), "wrong{Enter}");
  expect(await screen.findByRole("alert")).toHaveTextContent(LOCKED);
  expect(screen.getByLabelText("Password")).toHaveValue("");
  expect(screen.getByLabelText("Name")).toHaveValue("ada");
  await userEvent.type(screen.getByLabelText("Password"), "right{Enter}");
  expect(await screen.findByText("here is ada")).toBeVisible();
  expect(server.requests.filter((each) => each.method === "POST").map((each) => each.body)).toEqual([
    { name: "ada", password: "wrong" },
    { name: "ada", password: "right" },
  ]);
});

it("lets somebody in by a token, and forgets what was typed when it is refused", async () => {
  let tries = 0;
  const { server } = renderPage(<Somebody />, {
    session: null,
    answers: { "POST /api/v1/session/token": () => (++tries === 1 ? problem(401, "Unauthorized", "this token is not known") : admin) },
  });
  await userEvent.click(await screen.findByRole("button", { name: "With a token" }));
  expect(screen.queryByLabelText("Name")).toBeNull();
  await userEvent.type(screen.getByLabelText("Token"), "hr_old{Enter}");
  expect(await screen.findByRole("alert")).toHaveTextContent("this token is not known");
  expect(screen.getByLabelText("Token")).toHaveValue("");
  await userEvent.type(screen.getByLabelText("Token"), " hr_new {Enter}");
  expect(await screen.findByText("here is ada")).toBeVisible();
  expect(server.requests.filter((each) => each.method === "POST").map((each) => each.body)).toEqual([{ token: "hr_old" }, { token: "hr_new" }]);
});

it("goes straight in where there are no users", async () => {
  renderPage(<Somebody />, { session: { ...admin, name: "", auth: false, kind: null } });
  expect(await screen.findByText("here is anybody")).toBeVisible();
});

it("hides what a role forbids", async () => {
  const first = renderPage(<Somebody />, { session: viewer });
  expect(await screen.findByText("here is vic")).toBeVisible();
  expect(screen.queryByRole("button", { name: "Pause" })).toBeNull();
  first.unmount();
  renderPage(<Somebody />);
  expect(await screen.findByRole("button", { name: "Pause" })).toBeVisible();
});

it("shows the login again after logging out", async () => {
  renderPage(<Somebody />, { answers: { "DELETE /api/v1/session": new Response(null, { status: 204 }) } });
  await userEvent.click(await screen.findByRole("button", { name: "Out" }));
  expect(await screen.findByRole("heading", { name: "Log in to Headrace" })).toBeVisible();
});

function Secret() {
  const { data } = useQuery({ queryKey: ["secret"], queryFn: () => call(api.GET("/api/v1/queues")), staleTime: Number.POSITIVE_INFINITY });
  const [note, setNote] = useState("");
  return (
    <>
      <Somebody />
      <p>{data === undefined ? "nothing yet" : JSON.stringify(data)}</p>
      <input aria-label="Note" value={note} onChange={(event) => setNote(event.target.value)} />
    </>
  );
}

it("shows nothing of whoever was here before to somebody who logged in elsewhere", async () => {
  let who = admin;
  const live = new LiveHub();
  const forgotten = vi.spyOn(live, "reset");
  let answer: (value: unknown) => void = () => undefined;
  renderPage(<Secret />, {
    live,
    answers: {
      "GET /api/v1/session": () => who,
      "GET /api/v1/queues": () => (who === admin ? [{ name: "of ada" }] : new Promise((resolve) => (answer = resolve))),
    },
  });
  expect(await screen.findByText(/of ada/)).toBeVisible();
  await userEvent.type(screen.getByLabelText("Note"), "mine");
  // The same person comes back: nothing is taken away.
  act(() => focusManager.onFocus());
  expect(screen.getByText(/of ada/)).toBeVisible();
  who = viewer;
  act(() => focusManager.onFocus());
  expect(await screen.findByText("here is vic")).toBeVisible();
  expect(screen.queryByText(/of ada/)).toBeNull();
  expect(screen.getByLabelText("Note")).toHaveValue("");
  expect(screen.queryByRole("button", { name: "Pause" })).toBeNull();
  expect(forgotten).toHaveBeenCalledOnce();
  answer([{ name: "of vic" }]);
  expect(await screen.findByText(/of vic/)).toBeVisible();
});

it("says that the server is away, and asks again", async () => {
  let up = false;
  renderPage(<Somebody />, {
    answers: { "GET /api/v1/session": () => (up ? admin : problem(503, "Service Unavailable", "the database is away")) },
  });
  expect(await screen.findByRole("alert")).toHaveTextContent("the database is away");
  up = true;
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(await screen.findByText("here is ada")).toBeVisible();
});

it("leaves a page where it is while the server cannot be asked who is there", async () => {
  let up = true;
  const { server } = renderPage(<Secret />, {
    answers: { "GET /api/v1/session": () => (up ? admin : problem(503, "Service Unavailable", "the database is away")), "GET /api/v1/queues": [] },
  });
  await userEvent.type(await screen.findByLabelText("Note"), "half a word");
  up = false;
  const asked = () => server.requests.filter((each) => each.path === "/api/v1/session").length;
  const before = asked();
  act(() => focusManager.onFocus());
  await waitFor(() => expect(asked()).toBe(before + 1));
  await act(() => Promise.resolve());
  expect(screen.queryByRole("alert")).toBeNull();
  expect(screen.getByLabelText("Note")).toHaveValue("half a word");
});

function Deleting({ count }: { count: number }) {
  const confirm = useConfirm();
  return (
    <button
      type="button"
      onClick={() => {
        void confirm({ title: "Delete tasks", count, act: `Delete ${count} tasks`, danger: true }).then((yes) => {
          document.title = yes ? "deleted" : "kept";
        });
      }}
    >
      Delete
    </button>
  );
}

it("asks before an act, with its count, and takes no for an answer", async () => {
  renderPage(<Deleting count={12} />);
  await userEvent.click(await screen.findByRole("button", { name: "Delete" }));
  expect(screen.getByRole("dialog", { name: "Delete tasks" })).toHaveTextContent("12 are concerned");
  await userEvent.click(screen.getByRole("button", { name: "Keep as it is" }));
  expect(document.title).toBe("kept");
  await userEvent.click(screen.getByRole("button", { name: "Delete" }));
  await userEvent.click(screen.getByRole("button", { name: "Delete 12 tasks" }));
  expect(document.title).toBe("deleted");
});

it("has the number typed where very many are concerned", async () => {
  renderPage(<Deleting count={1204} />);
  await userEvent.click(await screen.findByRole("button", { name: "Delete" }));
  const act = screen.getByRole("button", { name: "Delete 1204 tasks" });
  expect(act).toBeDisabled();
  await userEvent.type(screen.getByLabelText("Type 1204 to go on"), "1,204");
  expect(act).toBeEnabled();
});
