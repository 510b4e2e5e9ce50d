import { describe, expect, it, vi } from "vitest";

import { Pages } from "./paging";

interface Item {
  readonly id: number;
  readonly done: boolean;
}

function pagesOf(count: number, size = 10) {
  const items: Item[] = Array.from({ length: count }, (_, id) => ({ id, done: id < 10 }));
  const read = vi.fn(async (_list: string, cursor: string | null) => {
    const from = Number(cursor ?? 0);
    const next = from + size;
    return Promise.resolve({ items: items.slice(from, next), next: next < items.length ? String(next) : null });
  });
  return { items, read, pages: new Pages<Item>(read, (item) => !item.done) };
}

async function quiet(pages: Pages<Item>): Promise<void> {
  await vi.waitFor(() => expect(pages.reading().size).toBe(0));
}

describe("pages of a group", () => {
  it("are read one after another, the first once", async () => {
    const { pages, read } = pagesOf(25);
    expect(pages.of("g")).toMatchObject({ items: [], hasMore: true });
    pages.open("g");
    pages.open("g");
    expect(pages.of("g").isReading).toBe(true);
    await quiet(pages);
    expect(pages.of("g").items).toHaveLength(10);
    pages.open("g");
    expect(read).toHaveBeenCalledTimes(1);
    pages.more("g");
    await quiet(pages);
    pages.more("g");
    await quiet(pages);
    expect(pages.of("g")).toMatchObject({ hasMore: false });
    expect(pages.of("g").items.map((item) => item.id)).toEqual(Array.from({ length: 25 }, (_, id) => id));
    pages.more("g");
    await quiet(pages);
    expect(read).toHaveBeenCalledTimes(3);
  });

  it("are all read when that is asked for, and it can be halted", async () => {
    const { pages } = pagesOf(95);
    pages.all("g");
    await quiet(pages);
    expect(pages.of("g").items).toHaveLength(95);
    const other = pagesOf(1000);
    other.pages.all("g");
    other.pages.subscribe(() => {
      if (other.pages.of("g").items.length >= 30) other.pages.halt("g");
    });
    await vi.waitFor(() => expect(other.pages.of("g").isReading).toBe(false));
    expect(other.pages.of("g").items.length).toBeLessThan(100);
  });

  it("are looked at again one by one, those alone that may change", async () => {
    const { pages, read, items } = pagesOf(30);
    pages.all("g");
    await quiet(pages);
    read.mockClear();
    items[15] = { id: 15, done: true };
    await pages.again(["g", "never opened"]);
    expect(read.mock.calls.map((call) => call[1])).toEqual(["10"]);
    expect(pages.of("g").items[15]).toEqual({ id: 15, done: true });
    await pages.again(["g"]);
    await pages.again(["g"]);
    // The first page has only what is done: it is not asked for.
    expect(read.mock.calls.map((call) => call[1])).toEqual(["10", "20", "10"]);
  });

  it("say what went wrong, and try again when more is asked for", async () => {
    const { pages, read } = pagesOf(25);
    read.mockRejectedValueOnce(new TypeError("Failed to fetch"));
    pages.open("g");
    await quiet(pages);
    expect(pages.of("g").problem?.title).toBe("The server cannot be reached");
    pages.more("g");
    await quiet(pages);
    expect(pages.of("g")).toMatchObject({ problem: null });
    expect(pages.of("g").items).toHaveLength(10);
  });
});
