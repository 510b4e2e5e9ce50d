import { act, render, screen } from "@testing-library/react";
import { StrictMode } from "react";
import { afterEach, describe, expect, it, vi } from "vitest";

import { Gatherer, type Frames } from "./frames";
import { LiveContext, useInterrupted, useLive } from "./hooks";
import { LiveHub } from "./hub";

class FakeFrames implements Frames {
  private waiting = new Set<() => void>();
  requested = 0;

  request(act: () => void): () => void {
    this.requested += 1;
    this.waiting.add(act);
    return () => this.waiting.delete(act);
  }

  run(): void {
    const acts = [...this.waiting];
    this.waiting.clear();
    for (const each of acts) each();
  }
}

class FakeSocket {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  closed = false;

  constructor(readonly url: string) {}

  close(): void {
    this.closed = true;
  }

  say(pending: number): void {
    this.onmessage?.({ data: JSON.stringify({ type: "system", tasks: { pending }, workers: {} }) });
  }
}

function aHub() {
  const frames = new FakeFrames();
  const sockets: FakeSocket[] = [];
  const timers = new Map<number, () => void>();
  let next = 1;
  const hub = new LiveHub(
    {
      open: (url) => {
        const socket = new FakeSocket(url);
        sockets.push(socket);
        return socket as unknown as WebSocket;
      },
      after: (_, act) => {
        timers.set(next, act);
        return next++;
      },
      forget: (handle) => timers.delete(handle),
      now: Date.now,
      random: () => 0,
    },
    frames,
  );
  const elapse = (): void => {
    const acts = [...timers.values()];
    timers.clear();
    for (const each of acts) each();
  };
  return { hub, frames, sockets, elapse };
}

let renderings = 0;

function Pending() {
  renderings += 1;
  const system = useLive({ kind: "system" }, "system");
  const interrupted = useInterrupted();
  return <p>{`${system?.tasks["pending"] ?? "nothing"}${interrupted ? ", reconnecting" : ""}`}</p>;
}

describe("the hub", () => {
  it("shows 500 messages of one frame with one rendering", () => {
    const { hub, frames, sockets } = aHub();
    render(
      <LiveContext value={hub}>
        <Pending />
      </LiveContext>,
    );
    act(() => sockets[0]?.onopen?.());
    const before = renderings;
    act(() => {
      for (let count = 1; count <= 500; count += 1) sockets[0]?.say(count);
      frames.run();
    });
    expect(screen.getByText("500")).toBeVisible();
    expect(renderings - before).toBe(1);
    expect(frames.requested).toBe(1);
  });

  it("shares one connection, also while one page is left for another, and ends it when nobody came", () => {
    const { hub, sockets, elapse, frames } = aHub();
    const first = render(
      <StrictMode>
        <LiveContext value={hub}>
          <Pending />
          <Pending />
        </LiveContext>
      </StrictMode>,
    );
    act(() => {
      sockets[0]?.say(7);
      frames.run();
    });
    first.unmount();
    const second = render(
      <LiveContext value={hub}>
        <Pending />
      </LiveContext>,
    );
    expect(screen.getByText("7")).toBeVisible();
    expect(sockets).toHaveLength(1);
    second.unmount();
    expect(sockets[0]?.closed).toBe(false);
    elapse();
    expect(sockets[0]?.closed).toBe(true);
  });

  it("says so from the moment that it is cut until it is open again", () => {
    const { hub, sockets, elapse } = aHub();
    render(
      <LiveContext value={hub}>
        <Pending />
      </LiveContext>,
    );
    expect(screen.getByText("nothing")).toBeVisible();
    act(() => sockets[0]?.onopen?.());
    act(() => sockets[0]?.onclose?.({ code: 1006, reason: "" }));
    expect(screen.getByText("nothing, reconnecting")).toBeVisible();
    act(() => elapse());
    expect(sockets).toHaveLength(2);
    expect(screen.getByText("nothing, reconnecting")).toBeVisible();
    act(() => sockets[1]?.onopen?.());
    expect(screen.getByText("nothing")).toBeVisible();
  });

  it("tells when the server knows the caller no more, and forgets what it was told", () => {
    const { hub, sockets, frames } = aHub();
    let out = 0;
    hub.whenSignedOut = () => {
      out += 1;
    };
    hub.watch({ kind: "system" }, { messages: () => undefined, status: () => undefined });
    sockets[0]?.say(3);
    frames.run();
    expect(hub.latest({ kind: "system" }, "system")).toBeDefined();
    sockets[0]?.onclose?.({ code: 4401, reason: "" });
    expect(out).toBe(1);
    hub.reset();
    expect(hub.latest({ kind: "system" }, "system")).toBeUndefined();
  });
});

describe("a gatherer", () => {
  it("keeps the order and loses nothing", () => {
    const frames = new FakeFrames();
    const taken: (readonly number[])[] = [];
    const gatherer = new Gatherer<number>((items) => taken.push(items), frames);
    gatherer.add(1);
    gatherer.add(2);
    frames.run();
    gatherer.add(3);
    frames.run();
    frames.run();
    expect(taken).toEqual([[1, 2], [3]]);
  });

  it("delivers nothing after it was stopped", () => {
    const frames = new FakeFrames();
    const taken: (readonly number[])[] = [];
    const gatherer = new Gatherer<number>((items) => taken.push(items), frames);
    gatherer.add(1);
    gatherer.stop();
    frames.run();
    expect(taken).toEqual([]);
  });

  describe("on a page that is hidden", () => {
    afterEach(() => {
      vi.useRealTimers();
      vi.unstubAllGlobals();
    });

    it("delivers although the frame that it waits for never comes, and once alone where it does", () => {
      vi.useFakeTimers();
      const frames: (() => void)[] = [];
      const forgotten: number[] = [];
      vi.stubGlobal("requestAnimationFrame", (act: () => void) => frames.push(act));
      vi.stubGlobal("cancelAnimationFrame", (handle: number) => forgotten.push(handle));
      const taken: (readonly number[])[] = [];
      const gatherer = new Gatherer<number>((items) => taken.push(items));
      gatherer.add(1);
      gatherer.add(2);
      vi.advanceTimersByTime(1000);
      expect(taken).toEqual([[1, 2]]);
      expect(forgotten).toEqual([1]);
      gatherer.add(3);
      frames[1]?.();
      expect(vi.getTimerCount()).toBe(0);
      expect(taken).toEqual([[1, 2], [3]]);
    });
  });
});
