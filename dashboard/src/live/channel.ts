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
  /** Milliseconds, of a clock that goes on while the machine sleeps. */
  now(): number;
  random(): number;
}

export const browser: Surroundings = {
  open: (url) => new WebSocket(url),
  after: (delay, act) => window.setTimeout(act, delay),
  forget: (handle) => window.clearTimeout(handle),
  now: Date.now,
  random: Math.random,
};

const FIRST_DELAY = 500;
const LONGEST_DELAY = 15_000;
/** What the server is asked to send at least so often. A connection that is cut without a word looks open for hours. */
const PING = 20_000;
const LONGEST_SILENCE = 2.5 * PING;
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
  private watchdog: number | null = null;
  private heardAt = 0;
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
    this.leave();
  }

  /** At once, in place of waiting for it, or for a word: the network is back, or a person asked for it. */
  hurry(): void {
    const isQuiet = this.socket !== null && this.around.now() - this.heardAt > PING;
    if (this.stopped || (this.timer === null && !isQuiet)) return;
    if (this.timer !== null) this.around.forget(this.timer);
    this.timer = null;
    this.leave();
    // There is a reason to believe in it: if it is a moment too early, the next try comes soon.
    this.tries = 0;
    this.connect();
  }

  private connect(): void {
    this.listener.status({ state: "connecting" });
    const socket = this.around.open(this.url());
    this.socket = socket;
    this.heardAt = this.around.now();
    this.listen(LONGEST_SILENCE);
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

  /** Looks after so long whether something was heard meanwhile, which costs a message nothing. */
  private listen(delay: number): void {
    this.watchdog = this.around.after(delay, () => {
      const silence = Math.max(0, this.around.now() - this.heardAt);
      if (silence < LONGEST_SILENCE) this.listen(LONGEST_SILENCE - silence);
      else this.lost();
    });
  }

  private leave(): void {
    if (this.watchdog !== null) this.around.forget(this.watchdog);
    this.watchdog = null;
    const { socket } = this;
    this.socket = null;
    socket?.close(1000);
  }

  private take(data: unknown): void {
    this.heardAt = this.around.now();
    // Only now: a server that accepts and closes at once must not be asked without pause.
    this.tries = 0;
    const message = read(data);
    if (message === null) return;
    const place = placeOf(this.topic, message);
    if (place !== null && Number.parseInt(place, 10) >= 0) this.place = place;
    this.listener.message(message);
  }

  private closed(event: CloseEvent): void {
    if (!FINAL.has(event.code)) {
      this.lost();
      return;
    }
    this.leave();
    this.listener.status({ state: "refused", code: event.code, reason: event.reason });
  }

  private lost(): void {
    this.leave();
    this.tries += 1;
    this.listener.status({ state: "waiting", tries: this.tries });
    this.timer = this.around.after(delayOf(this.tries, this.around.random()), () => {
      this.timer = null;
      this.connect();
    });
  }

  private url(): string {
    const url = new URL(pathOf(this.topic), this.origin.replace(/^http/, "ws"));
    url.searchParams.set("ping", String(PING / 1000));
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
