/**
 * One topic over one WebSocket, for as long as somebody watches: it comes back after every interruption, and goes on
 * behind the last number that it saw, so that nothing is missed and nothing comes twice.
 */

import { type LiveMessage, pathOf, placeOf, type Topic } from "./topics";

export type ChannelStatus =
  | { readonly state: "connecting" }
  | { readonly state: "open" }
  | { readonly state: "waiting"; readonly tries: number }
  /** It does not come back by itself: not allowed, not there, or not understood. */
  | { readonly state: "refused"; readonly code: number; readonly reason: string };

export interface ChannelListener {
  message(message: LiveMessage): void;
  status(status: ChannelStatus): void;
}

export interface Surroundings {
  open(url: string): WebSocket;
  /** Milliseconds. */
  after(delay: number, act: () => void): number;
  forget(handle: number): void;
  random(): number;
}

export const browser: Surroundings = {
  open: (url) => new WebSocket(url),
  after: (delay, act) => window.setTimeout(act, delay),
  forget: (handle) => window.clearTimeout(handle),
  random: Math.random,
};

const FIRST_DELAY = 500;
const LONGEST_DELAY = 15_000;
// The codes of headrace/server/live/sockets.py that the same request would meet again.
const FINAL: ReadonlySet<number> = new Set([4400, 4401, 4403, 4404]);
export const NOT_AUTHENTICATED = 4401;

/** Milliseconds before the n-th try (from 1): doubled each time, and spread so that not all pages come back at once. */
export function delayOf(tries: number, random: number): number {
  const full = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** (tries - 1));
  return Math.round(full / 2 + (full / 2) * random);
}

export class Channel {
  private socket: WebSocket | null = null;
  private timer: number | null = null;
  private tries = 0;
  private stopped = false;
  /** Where to go on from. */
  private place: string | null = null;

  constructor(
    readonly topic: Topic,
    private readonly listener: ChannelListener,
    private readonly around: Surroundings = browser,
    private readonly origin: string = location.origin,
  ) {}

  start(): void {
    this.stopped = false;
    this.connect();
  }

  stop(): void {
    this.stopped = true;
    if (this.timer !== null) this.around.forget(this.timer);
    this.timer = null;
    this.socket?.close(1000);
    this.socket = null;
  }

  /** At once, in place of waiting: the network is back, or a person asked for it. */
  hurry(): void {
    if (this.timer === null || this.stopped) return;
    this.around.forget(this.timer);
    this.timer = null;
    // There is a reason to believe in it: if it is a moment too early, the next try comes soon.
    this.tries = 0;
    this.connect();
  }

  private connect(): void {
    this.listener.status({ state: "connecting" });
    const socket = this.around.open(this.url());
    this.socket = socket;
    socket.onopen = () => {
      if (this.socket === socket) this.listener.status({ state: "open" });
    };
    socket.onmessage = (event: MessageEvent<unknown>) => {
      if (this.socket === socket) this.take(event.data);
    };
    socket.onclose = (event) => {
      if (this.socket === socket) this.closed(event);
    };
  }

  private take(data: unknown): void {
    // Only now: a server that accepts and closes at once must not be asked without pause.
    this.tries = 0;
    const message = read(data);
    if (message === null) return;
    const place = placeOf(this.topic, message);
    if (place !== null && Number.parseInt(place, 10) >= 0) this.place = place;
    this.listener.message(message);
  }

  private closed(event: CloseEvent): void {
    this.socket = null;
    if (this.stopped) return;
    if (FINAL.has(event.code)) {
      this.listener.status({ state: "refused", code: event.code, reason: event.reason });
      return;
    }
    this.tries += 1;
    this.listener.status({ state: "waiting", tries: this.tries });
    this.timer = this.around.after(delayOf(this.tries, this.around.random()), () => {
      this.timer = null;
      this.connect();
    });
  }

  private url(): string {
    const url = new URL(pathOf(this.topic), this.origin.replace(/^http/, "ws"));
    if (this.place !== null) url.searchParams.set("after", this.place);
    return url.href;
  }
}

function read(data: unknown): LiveMessage | null {
  if (typeof data !== "string") return null;
  try {
    const found = JSON.parse(data) as LiveMessage | { readonly type: "ping" };
    return found.type === "ping" ? null : found;
  } catch {
    return null;
  }
}
