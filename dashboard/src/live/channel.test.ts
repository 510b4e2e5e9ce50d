import { describe, expect, it } from "vitest";

import { Channel, delayOf, type ChannelStatus, type Surroundings } from "./channel";
import type { LiveMessage, Topic } from "./topics";

class FakeSocket {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  closedWith: number | null = null;

  constructor(readonly url: string) {}

  close(code: number): void {
    this.closedWith = code;
  }

  say(message: object): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  drop(code = 1006, reason = ""): void {
    this.onclose?.({ code, reason });
  }
}

function watching(topic: Topic) {
  const sockets: FakeSocket[] = [];
  const timers = new Map<number, { delay: number; due: number; act: () => void }>();
  let next = 1;
  let now = 0;
  const around: Surroundings = {
    open: (url) => {
      const socket = new FakeSocket(url);
      sockets.push(socket);
      return socket as unknown as WebSocket;
    },
    after: (delay, act) => {
      timers.set(next, { delay, due: now + delay, act });
      return next++;
    },
    forget: (handle) => timers.delete(handle),
    now: () => now,
    random: () => 1,
  };
  const messages: LiveMessage[] = [];
  const statuses: ChannelStatus[] = [];
  const channel = new Channel(
    topic,
    { message: (message) => messages.push(message), status: (status) => statuses.push(status) },
    around,
    "https://host:8000",
  );
  const elapse = (): number => {
    const [[handle, timer] = [0, undefined]] = timers;
    if (timer === undefined) throw new Error("nothing is waited for");
    timers.delete(handle);
    now = Math.max(now, timer.due);
    timer.act();
    return timer.delay;
  };
  const pass = (time: number): void => {
    now += time;
  };
  const last = (): FakeSocket => {
    const socket = sockets.at(-1);
    if (socket === undefined) throw new Error("no socket was opened");
    return socket;
  };
  return { channel, sockets, timers, messages, statuses, elapse, pass, last };
}

const line = (claim_no: number, seq: number) => ({
  type: "task_log_message",
  message: "x",
  stream: "info",
  task: "17",
  claim_no,
  seq,
  at: "2026-05-01T08:00:00Z",
});

describe("a channel", () => {
  it("connects to the same host, by the same safety", () => {
    const { channel, last } = watching({ kind: "task", id: 17 });
    channel.start();
    expect(last().url).toBe("wss://host:8000/ws/task/17/?ping=20");
  });

  it("goes on behind the last number of a task, and not behind a state", () => {
    const { channel, last, elapse, messages } = watching({ kind: "task", id: 17 });
    channel.start();
    last().say(line(1, 8));
    last().say(line(2, 0));
    last().say({ type: "task_update", task: "17", status: "running" });
    last().say({ type: "ping" });
    last().drop();
    elapse();
    expect(new URL(last().url).searchParams.get("after")).toBe("2.0");
    expect(messages.map((each) => each.type)).toEqual(["task_log_message", "task_log_message", "task_update"]);
  });

  it("goes on behind the number of a job's line, which counts over all its tasks", () => {
    const { channel, last, elapse } = watching({ kind: "job-logs", id: 3 });
    channel.start();
    last().say(line(4, 99));
    last().drop();
    elapse();
    expect(last().url).toBe("wss://host:8000/ws/job/3/logs/?ping=20&after=99");
  });

  it("does not go on behind the state of a job that has no event yet", () => {
    const { channel, last, elapse } = watching({ kind: "job", id: 3 });
    channel.start();
    last().say({ type: "job_status_update", status: "pending", seq: -1, data: {} });
    last().drop();
    elapse();
    expect(last().url).toBe("wss://host:8000/ws/job/3/status/?ping=20");
  });

  it("waits longer each time, also for a server that accepts and closes at once, and anew after a message", () => {
    const { channel, last, elapse } = watching({ kind: "system" });
    channel.start();
    const delays: number[] = [];
    for (let time = 0; time < 7; time += 1) {
      last().onopen?.();
      last().drop();
      delays.push(elapse());
    }
    expect(delays).toEqual([500, 1000, 2000, 4000, 8000, 15_000, 15_000]);
    last().say({ type: "system", tasks: {}, workers: {} });
    last().drop();
    expect(elapse()).toBe(500);
  });

  it.each([4400, 4401, 4403, 4404])("does not come back after %i", (code) => {
    const { channel, last, timers, statuses } = watching({ kind: "task", id: 17 });
    channel.start();
    last().drop(code, "no");
    expect(timers.size).toBe(0);
    expect(statuses.at(-1)).toEqual({ state: "refused", code, reason: "no" });
  });

  it.each([1000, 1006, 1012, 1013, 4408, 4429])("comes back after %i", (code) => {
    const { channel, last, elapse, statuses, sockets } = watching({ kind: "system" });
    channel.start();
    last().drop(code);
    expect(statuses.at(-1)).toEqual({ state: "waiting", tries: 1 });
    elapse();
    expect(sockets).toHaveLength(2);
  });

  it("hurries when it is asked to, and only while it waits", () => {
    const { channel, last, sockets, statuses } = watching({ kind: "system" });
    channel.start();
    channel.hurry();
    expect(sockets).toHaveLength(1);
    last().drop();
    channel.hurry();
    expect(sockets).toHaveLength(2);
    last().onopen?.();
    channel.hurry();
    expect(sockets).toHaveLength(2);
    expect(statuses.map((each) => each.state)).toEqual(["connecting", "waiting", "connecting", "open"]);
  });

  it("gives up a connection that says nothing for longer than two pings, goes on behind what it heard, and says so", () => {
    const { channel, last, elapse, sockets, statuses } = watching({ kind: "task", id: 17 });
    channel.start();
    const silent = last();
    silent.onopen?.();
    silent.say(line(1, 8));
    expect(elapse()).toBe(50_000);
    expect(silent.closedWith).toBe(1000);
    expect(statuses.at(-1)).toEqual({ state: "waiting", tries: 1 });
    elapse();
    expect(sockets).toHaveLength(2);
    expect(new URL(last().url).searchParams.get("after")).toBe("1.8");
    // What the old one still says or does is not heard.
    silent.drop();
    expect(statuses.at(-1)).toEqual({ state: "connecting" });
  });

  it("stays with a connection on which there are pings alone", () => {
    const { channel, last, elapse, pass, sockets, statuses } = watching({ kind: "task", id: 17 });
    channel.start();
    last().onopen?.();
    const pingAfter = (time: number): void => {
      pass(time);
      last().say({ type: "ping" });
    };
    pingAfter(20_000);
    pingAfter(20_000);
    expect(elapse()).toBe(50_000);
    pingAfter(10_000);
    pingAfter(20_000);
    // So long after the last one that was heard by then.
    expect(elapse()).toBe(40_000);
    expect(sockets).toHaveLength(1);
    expect(statuses.at(-1)).toEqual({ state: "open" });
  });

  it("hurries in place of a connection that has missed a ping, as after a sleep", () => {
    const { channel, last, pass, sockets } = watching({ kind: "system" });
    channel.start();
    const asleep = last();
    asleep.onopen?.();
    pass(20_001);
    channel.hurry();
    expect(asleep.closedWith).toBe(1000);
    expect(sockets).toHaveLength(2);
    channel.hurry();
    expect(sockets).toHaveLength(2);
  });

  it("tries again soon when it was hurried a moment too early", () => {
    const { channel, last, elapse } = watching({ kind: "system" });
    channel.start();
    for (let time = 0; time < 6; time += 1) {
      last().drop();
      elapse();
    }
    last().drop();
    channel.hurry();
    last().drop();
    expect(elapse()).toBe(500);
  });

  it("stays away once it was stopped, and does not hear what is still said", () => {
    const { channel, last, timers, messages, sockets } = watching({ kind: "system" });
    channel.start();
    const socket = last();
    channel.stop();
    expect(socket.closedWith).toBe(1000);
    socket.say({ type: "system", tasks: {}, workers: {} });
    socket.drop();
    expect([timers.size, messages.length, sockets.length]).toEqual([0, 0, 1]);
  });

  it("survives what is no message", () => {
    const { channel, last, messages } = watching({ kind: "system" });
    channel.start();
    last().onmessage?.({ data: "{not json" });
    last().onmessage?.({ data: new ArrayBuffer(2) });
    expect(messages).toEqual([]);
  });
});

it("spreads those who come back together", () => {
  expect([delayOf(3, 0), delayOf(3, 0.5), delayOf(3, 1)]).toEqual([1000, 1500, 2000]);
});
