import { expect, it } from "vitest";

import { ageNow, byWorker, crowdText, isSilent, nameOf, parted, queuesText, toneOfAge } from "./beating";

const worker = (state: "active" | "stopped" | "stopping", alive: boolean) => ({
  state,
  alive,
  last_heartbeat: "2026-05-01T08:00:00Z",
});

it("counts on from what the server said", () => {
  expect(ageNow(2.5, 1000, 4000)).toBe(5.5);
  // A clock that was set back must not make a worker younger than it was.
  expect(ageNow(2.5, 4000, 1000)).toBe(2.5);
});

it("warns before the lease is over, and says when it is", () => {
  expect([toneOfAge(1, 30), toneOfAge(20, 30), toneOfAge(20.1, 30), toneOfAge(30.1, 30)]).toEqual(["good", "good", "warn", "bad"]);
});

it("keeps those apart that are dead", () => {
  const all = [worker("active", true), worker("stopping", true), worker("active", false), worker("stopped", false)];
  const { working, silent, stopped } = parted(all);
  expect([working.length, silent.length, stopped.length]).toEqual([2, 1, 1]);
  expect(isSilent(worker("stopping", false))).toBe(true);
  const later = { ...worker("stopped", false), last_heartbeat: "2026-05-01T09:00:00Z" };
  expect(parted([worker("stopped", false), later]).stopped[0]).toBe(later);
});

it("gives tasks to who holds them", () => {
  const found = byWorker([
    { id: 1, worker: "a" },
    { id: 2, worker: null },
    { id: 3, worker: "a" },
  ]);
  expect(found.get("a")?.map((task) => task.id)).toEqual([1, 3]);
  expect(found.size).toBe(1);
});

it("counts workers and hosts", () => {
  const [here, there] = [{ hostname: "a" }, { hostname: "b" }];
  expect([crowdText([]), crowdText([here]), crowdText([here, here, there])]).toEqual(["none works", "1 works on 1 host", "3 work on 2 hosts"]);
});

it("says what a worker is and takes", () => {
  expect(nameOf({ hostname: "vm", pid: 7 })).toBe("vm · 7");
  expect([queuesText([]), queuesText(["mail", "slow"])]).toEqual(["every queue", "mail, slow"]);
});
