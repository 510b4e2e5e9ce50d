/** Pages of many lists at once: members of each group that somebody has unfolded. */

import { useEffect, useMemo, useSyncExternalStore } from "react";

import { asProblem, type ProblemError } from "@/api";

import type { PageOf } from "./reading";

type Read<Item> = (list: string, cursor: string | null, signal: AbortSignal) => Promise<PageOf<Item>>;

interface ReadPage<Item> {
  readonly cursor: string | null;
  readonly items: readonly Item[];
  readonly next: string | null;
}

interface Held<Item> {
  pages: ReadPage<Item>[];
  items: readonly Item[];
  isReading: boolean;
  /** Go on to the end. */
  readsAll: boolean;
  problem: ProblemError | null;
  /** Which page is looked at next when they are looked at again. */
  again: number;
}

export interface PagedList<Item> {
  readonly items: readonly Item[];
  readonly hasMore: boolean;
  readonly isReading: boolean;
  readonly problem: ProblemError | null;
}

const NOTHING: PagedList<never> = { items: [], hasMore: true, isReading: false, problem: null };

export class Pages<Item> {
  private readonly lists = new Map<string, Held<Item>>();
  private readonly shown = new Map<string, PagedList<Item>>();
  private readonly listeners = new Set<() => void>();
  private controller = new AbortController();
  private version = 0;

  constructor(
    private readonly read: Read<Item>,
    /** Whether an item may still change. */
    private readonly mayChange: (item: Item) => boolean,
  ) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly getVersion = (): number => this.version;

  readonly of = (list: string): PagedList<Item> => {
    const found = this.shown.get(list);
    if (found !== undefined) return found;
    const held = this.lists.get(list);
    if (held === undefined) return NOTHING;
    const last = held.pages.at(-1);
    const shown: PagedList<Item> = {
      items: held.items,
      hasMore: last === undefined || last.next !== null,
      isReading: held.isReading,
      problem: held.problem,
    };
    this.shown.set(list, shown);
    return shown;
  };

  /** The names of lists that are being read. */
  reading(): ReadonlySet<string> {
    return new Set([...this.lists].filter(([, held]) => held.isReading).map(([list]) => list));
  }

  /** Reads the first page, where that was not yet done. */
  open(list: string): void {
    const held = this.held(list);
    if (held.pages.length === 0 && !held.isReading && held.problem === null) void this.next(list);
  }

  more(list: string): void {
    void this.next(list);
  }

  /** All that there are, page by page. */
  all(list: string): void {
    this.held(list).readsAll = true;
    void this.next(list);
  }

  /** The page that is on its way is the last. */
  halt(list: string): void {
    this.held(list).readsAll = false;
  }

  /** Looks again at one page of each of these lists that may have changed; the next time at the next one. */
  async again(lists: Iterable<string>): Promise<void> {
    await Promise.all(Array.from(lists, (list) => this.lookAgain(list)));
  }

  stop(): void {
    this.controller.abort();
    this.controller = new AbortController();
    for (const held of this.lists.values()) {
      held.isReading = false;
      held.readsAll = false;
    }
  }

  private held(list: string): Held<Item> {
    const found = this.lists.get(list);
    if (found !== undefined) return found;
    const made: Held<Item> = { pages: [], items: [], isReading: false, readsAll: false, problem: null, again: 0 };
    this.lists.set(list, made);
    return made;
  }

  private async next(list: string): Promise<void> {
    const held = this.held(list);
    const { signal } = this.controller;
    if (held.isReading) return;
    held.isReading = true;
    held.problem = null;
    this.changed(list);
    try {
      do {
        const last = held.pages.at(-1);
        if (last !== undefined && last.next === null) break;
        const cursor = last?.next ?? null;
        const page = await this.read(list, cursor, signal);
        if (signal.aborted) return;
        held.pages.push({ cursor, ...page });
        held.items = [...held.items, ...page.items];
        this.changed(list);
      } while (held.readsAll);
    } catch (error) {
      if (signal.aborted) return;
      held.problem = asProblem(error);
      held.readsAll = false;
    }
    held.isReading = false;
    this.changed(list);
  }

  private async lookAgain(list: string): Promise<void> {
    const held = this.lists.get(list);
    if (held === undefined || held.isReading || held.pages.length === 0) return;
    const { signal } = this.controller;
    const last = held.pages.length - 1;
    for (let tried = 0; tried <= last; tried++) {
      const at = (held.again + tried) % held.pages.length;
      const page = held.pages[at];
      // The last page may have grown.
      if (page === undefined || !(page.items.some(this.mayChange) || (at === last && page.next === null))) continue;
      held.again = at + 1;
      try {
        const found = await this.read(list, page.cursor, signal);
        if (signal.aborted || held.pages[at] !== page) return;
        held.pages[at] = { cursor: page.cursor, ...found };
        held.items = held.pages.flatMap((each) => each.items);
        held.problem = null;
      } catch (error) {
        if (signal.aborted) return;
        held.problem = asProblem(error);
      }
      this.changed(list);
      return;
    }
  }

  private changed(list: string): void {
    this.version++;
    this.shown.delete(list);
    for (const listener of [...this.listeners]) listener();
  }
}

/** Pages that live as long as the component does; it is rendered anew when one of them changes. */
export function usePages<Item>(key: string, read: Read<Item>, mayChange: (item: Item) => boolean): Pages<Item> {
  // Another key is another thing that is read; `read` itself is made anew with every rendering.
  const pages = useMemo(() => new Pages(read, mayChange), [key]);
  useSyncExternalStore(pages.subscribe, pages.getVersion);
  useEffect(() => () => pages.stop(), [pages]);
  return pages;
}
