import { readdirSync } from "node:fs";
import { join } from "node:path";

import { describe, expect, it } from "vitest";

import { collect, type Panel } from "./panel";
import { panels } from "./panels";

function panel(id: string, more: Partial<Panel> = {}): { panel: Panel } {
  return { panel: { id, path: id, title: id, icon: () => null, group: "work", order: 10, routes: [], ...more } };
}

describe("panels", () => {
  it("are found by their folder: one more folder is one more panel, and no list names them", () => {
    const folders = readdirSync(join(import.meta.dirname, "../panels"), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
    expect(panels.map((each) => each.id).sort()).toEqual(folders.sort());
    expect(folders).toContain("overview");
  });

  it("stand in the order of groups, then of their numbers", () => {
    const found = collect({
      a: panel("audit", { group: "administer", order: 1 }),
      b: panel("jobs", { order: 20 }),
      c: panel("tasks", { order: 10 }),
      d: panel("overview", { group: "observe", order: 99 }),
    });
    expect(found.map((each) => each.id)).toEqual(["overview", "tasks", "jobs", "audit"]);
  });

  it.each([
    ["id", panel("tasks", { path: "other" })],
    ["path", panel("other", { path: "tasks" })],
    ["shortcut", panel("other", { shortcuts: [{ keys: "g t", title: "", run: () => undefined }] })],
  ])("refuse the same %s twice", (kind, second) => {
    const first = panel("tasks", { shortcuts: [{ keys: "g t", title: "", run: () => undefined }] });
    expect(() => collect({ first, second })).toThrow(`second and first have the same ${kind}`);
  });

  it("refuse a path of two parts", () => {
    expect(() => collect({ one: panel("one", { path: "one/two" }) })).toThrow("more than one part");
  });
});
