import { describe, expect, it } from "vitest";

import { ProblemError } from "@/api";

import { commandDraftOf, commandOf, NO_COMMAND, splitWords } from "./command";
import { NO_OPTIONS, optionsOf, parseDuration, type OptionsDraft } from "./options";
import { argumentErrors, placed } from "./placing";

const options = (draft: Partial<OptionsDraft>) => optionsOf({ ...NO_OPTIONS, ...draft });

describe("options", () => {
  it("are as the task has them where nothing is written", () => {
    expect(options({})).toEqual({ value: {}, wrongs: new Map() });
    // What is not chosen does not count, whatever stands in its field.
    expect(options({ delay: "x", key: "k", at: "y" })).toEqual({ value: {}, wrongs: new Map() });
  });

  it("are sent as the server takes them", () => {
    const draft = { queue: " mail ", priority: "-5", when: "delay", delay: "1h 30m", tags: "a, b,,a", timeout: "90", maxAge: "2d" } as const;
    expect(options(draft)).toEqual({
      value: { queue: "mail", priority: -5, delay: 5400, tags: ["a", "b"], timeout: 90, max_age: 172_800 },
      wrongs: new Map(),
    });
    expect(options({ when: "at", at: "2026-05-01T10:00" }).value.run_at).toBe(new Date("2026-05-01T10:00").toISOString());
  });

  it("keep a task unique by its call, or by a key", () => {
    expect(options({ unique: "call" }).value).toEqual({ unique: true, on_conflict: "return" });
    expect(options({ unique: "key", key: " nightly ", conflict: "reject" }).value).toEqual({ unique: "nightly", on_conflict: "reject" });
    expect(options({ unique: "key", key: " " }).wrongs.has("unique")).toBe(true);
  });

  it("say what is wrong with them", () => {
    const { wrongs } = options({ priority: "high", when: "delay", delay: "soon", timeout: "0", maxAge: "-1" });
    expect([...wrongs.keys()]).toEqual(["priority", "delay", "timeout", "max_age"]);
    expect(options({ when: "at" }).wrongs.has("run_at")).toBe(true);
    expect(options({ priority: "3000000000" }).wrongs.has("priority")).toBe(true);
  });

  it.each([
    ["90", 90],
    ["1.5h", 5400],
    ["1h30m", 5400],
    ["2 min", 120],
    ["250ms", 0.25],
    ["1w", 604_800],
    ["", null],
    ["1 hour", null],
    ["-5", null],
  ])("a time of %s", (text, seconds) => {
    expect(parseDuration(text)).toBe(seconds);
  });
});

describe("a command", () => {
  it("is split into words as a shell would", () => {
    expect(splitWords(String.raw`python -c 'print("a b")' "it's" a\ b "" --x="y z"`)).toEqual([
      "python",
      "-c",
      'print("a b")',
      "it's",
      "a b",
      "",
      "--x=y z",
    ]);
    expect(splitWords("echo 'open")).toBeNull();
    expect(splitWords("  ")).toEqual([]);
    expect(splitWords("echo $HOME *.py | cat")).toEqual(["echo", "$HOME", "*.py", "|", "cat"]);
  });

  it("has what was given alone", () => {
    expect(commandOf({ ...NO_COMMAND, line: "ls -l" })).toEqual({ value: { argv: ["ls", "-l"] }, wrongs: new Map() });
    expect(commandOf({ line: "env", cwd: "/srv", env: "A=1\n\nB=x=y", stdin: "in" }).value).toEqual({
      argv: ["env"],
      cwd: "/srv",
      env: { A: "1", B: "x=y" },
      stdin: "in",
    });
  });

  it("says what is wrong with it", () => {
    expect(commandOf(NO_COMMAND).wrongs.has("argv")).toBe(true);
    expect(commandOf({ ...NO_COMMAND, line: '"' }).wrongs.get("argv")).toBe("A quote is not closed");
    expect(commandOf({ ...NO_COMMAND, line: "ls", env: "A=1\nB" }).wrongs.get("env")).toBe("Line 2 is not NAME=value");
  });

  it("is shown so that it is the same again", () => {
    const command = { argv: ["python", "-c", "print('a b')", ""], env: { A: "1" }, cwd: "/srv", stdin: "x" };
    const draft = commandDraftOf(command);
    expect(draft && commandOf(draft).value).toEqual(command);
    expect(commandDraftOf({ user_id: 7 })).toBeNull();
    expect(commandDraftOf(null)).toBeNull();
  });
});

describe("what the server refused", () => {
  const names = ["user_id", "numbers", "greeting"];

  it("stands beside the argument that it names", () => {
    const detail = "task tasks.welcome: 'user_id': input should be a valid integer, not 'x'; 'numbers.0': wrong; or so; 'greeting' is missing";
    expect(argumentErrors(detail)).toEqual([
      ["/user_id", "Input should be a valid integer, not 'x'"],
      ["/numbers/0", "Wrong; or so"],
      ["/greeting", "Required"],
    ]);
    const found = placed(new ProblemError("Unprocessable Content", 422, detail), names);
    expect(found.rest).toBeNull();
    expect(found.args.get("/greeting")).toBe("Required");
    // Parts may be named otherwise there than in the form.
    expect(found.args.get("/numbers")).toBe("0: Wrong; or so");
  });

  it("stands above the form where it is about no field of it", () => {
    const unknown = new ProblemError("Unprocessable Content", 422, "task tasks.welcome: 'other': no");
    expect(placed(unknown, names)).toMatchObject({ rest: unknown });
    const busy = new ProblemError("Conflict", 409, "the key is held");
    expect(placed(busy, names).rest).toBe(busy);
    expect(placed(null, names).rest).toBeNull();
  });

  it("stands beside options by their pointers", () => {
    const wrongs = [
      { where: "body", pointer: "/priority", detail: "too large" },
      { where: "body", pointer: "/command/argv/0", detail: "too long" },
      { where: "body", pointer: "/kwargs/user_id", detail: "no" },
      { where: "header", pointer: "/Idempotency-Key", detail: "too long" },
    ];
    const found = placed(new ProblemError("Unprocessable Content", 422, "wrong", null, wrongs), names);
    expect([...found.options]).toEqual([["priority", "too large"], ["argv", "too long"]]);
    expect([...found.args]).toEqual([["/user_id", "no"]]);
    expect(found.rest?.wrongs).toEqual([wrongs[3]]);
  });
});
