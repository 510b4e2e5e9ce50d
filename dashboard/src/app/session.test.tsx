import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

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
