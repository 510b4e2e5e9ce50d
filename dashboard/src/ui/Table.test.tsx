import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it, vi } from "vitest";

import { ProblemError } from "@/api";
import { renderPage } from "@/testing/page";

import { Table, type Column } from "./Table";

interface Fruit {
  readonly id: number;
  readonly name: string;
}

const FRUITS: readonly Fruit[] = [
  { id: 1, name: "apple" },
  { id: 2, name: "pear" },
  { id: 3, name: "plum" },
];
const COLUMNS: readonly Column<Fruit>[] = [
  { id: "name", title: "Name", cell: (fruit) => fruit.name },
  { id: "id", title: "Number", align: "right", cell: (fruit) => fruit.id },
];
const LISTING = {
  isPending: false,
  isFetching: false,
  problem: null as unknown,
  hasMore: false,
  isLoadingMore: false,
  more: () => undefined as void,
  refresh: () => undefined as void,
};

function Fruits({ rows = FRUITS, listing = LISTING }: { rows?: readonly Fruit[]; listing?: typeof LISTING }) {
  const [selected, change] = useState<ReadonlySet<string>>(new Set());
  return (
    <>
      <Table
        label="Fruits"
        columns={COLUMNS}
        rows={rows}
        keyOf={(fruit) => fruit.id}
        linkOf={(fruit) => `/fruits/${fruit.id}`}
        nameOf={(fruit) => fruit.name}
        selection={{ selected, change }}
        listing={listing}
        empty="no fruits"
      />
      <output>{[...selected].sort().join(",")}</output>
    </>
  );
}

async function row(name: string): Promise<HTMLElement> {
  const found = (await screen.findByRole("link", { name })).closest("tr");
  if (found === null) throw new Error(`${name} is in no row`);
  return found;
}

it("is walked through, selected and opened by keys", async () => {
  const { router } = renderPage(<Fruits />);
  (await row("apple")).focus();
  await userEvent.keyboard("{ArrowDown}j");
  expect(await row("plum")).toHaveFocus();
  await userEvent.keyboard("k x");
  expect(document.querySelector("output")).toHaveTextContent("");
  await userEvent.keyboard("x{Shift>}{ArrowDown}{/Shift}");
  expect(document.querySelector("output")).toHaveTextContent("2,3");
  await userEvent.keyboard("{Home}{Enter}");
  expect(router.state.location.pathname).toBe("/fruits/1");
});

it("has one row among its rows that Tab reaches", async () => {
  renderPage(<Fruits />);
  await row("apple");
  expect(screen.getAllByRole("row").filter((each) => each.tabIndex === 0 && each.closest("tbody"))).toHaveLength(1);
});

it("opens a row that is clicked, and not when its box is", async () => {
  const { router } = renderPage(<Fruits />);
  await userEvent.click(await screen.findByRole("checkbox", { name: "Select pear" }));
  expect(router.state.location.pathname).toBe("/");
  expect(document.querySelector("output")).toHaveTextContent("2");
  await userEvent.click(within(await row("pear")).getByText("2"));
  expect(router.state.location.pathname).toBe("/fruits/2");
});

it("selects all that are shown, and says how many", async () => {
  renderPage(<Fruits />);
  await userEvent.click(await screen.findByRole("checkbox", { name: "Select all 3 that are shown" }));
  expect(document.querySelector("output")).toHaveTextContent("1,2,3");
});

it("reads more at its end, once", async () => {
  const more = vi.fn();
  renderPage(<Fruits listing={{ ...LISTING, hasMore: true, more }} />);
  (await row("pear")).focus();
  await userEvent.keyboard("{ArrowDown}");
  expect(more).toHaveBeenCalledOnce();
  await userEvent.click(screen.getByRole("button", { name: "Show more" }));
  expect(more).toHaveBeenCalledTimes(2);
});

it("says what went wrong in place of nothing, and beside what it still has", async () => {
  const problem = new ProblemError("Service Unavailable", 503, "the database cannot be reached now");
  const { rerender: _, ...first } = renderPage(<Fruits rows={[]} listing={{ ...LISTING, problem }} />);
  expect(await screen.findByRole("alert")).toHaveTextContent("the database cannot be reached now");
  expect(screen.queryByText("no fruits")).toBeNull();
  first.unmount();
  renderPage(<Fruits listing={{ ...LISTING, problem }} />);
  expect(await screen.findByText("What is shown is not up to date")).toBeVisible();
  expect(await row("apple")).toBeVisible();
});

it("says that there is nothing only when it knows", async () => {
  const first = renderPage(<Fruits rows={[]} listing={{ ...LISTING, isPending: true }} />);
  expect(await screen.findByRole("status", { name: "Reading" })).toBeInTheDocument();
  expect(screen.queryByText("no fruits")).toBeNull();
  first.unmount();
  renderPage(<Fruits rows={[]} />);
  expect(await screen.findByText("no fruits")).toBeVisible();
});
