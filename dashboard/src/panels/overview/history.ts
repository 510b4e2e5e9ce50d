/** What was seen since the dashboard is open, also while another of its pages was: the ledger notes depths by the minute. */

import { useSyncExternalStore } from "react";

import { useLiveMessages, type OverviewMessage } from "@/live";

import { remember, type Sample } from "./figures";

interface Seen {
  readonly samples: readonly Sample[];
  readonly latest: OverviewMessage | undefined;
}

export class History {
  private seen: Seen = { samples: [], latest: undefined };
  private readonly listeners = new Set<() => void>();

  readonly read = (): Seen => this.seen;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly take = (messages: readonly OverviewMessage[]): void => {
    for (const message of messages) {
      const samples = remember(this.seen.samples, this.seen.latest ?? null, message);
      this.seen = { samples, latest: message };
    }
    for (const listener of [...this.listeners]) listener();
  };
}

const history = new History();

export function useHistory(): Seen {
  useLiveMessages({ kind: "overview" }, history.take);
  return useSyncExternalStore(history.subscribe, history.read);
}
