import { describe, expect, it } from "vitest";

import { fold, shortPath } from "./folding";
import { isFrame, libraryOf, parseTraceback, type Frame, type Link } from "./parse";

const CHAIN = `Traceback (most recent call last):
  File "/srv/app/tasks.py", line 3, in inner
    if n: return inner(n-1)
                 ~~~~~^^^^^
  [Previous line repeated 7 more times]
  File "/srv/app/tasks.py", line 4, in inner
    raise ValueError("deep\\nsecond line")
ValueError: deep
second line

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/app/tasks.py", line 17, in mend
    try: {}["k"]
         ~~^^^^^
KeyError: 'k'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/app/tasks.py", line 18, in <module>
    raise RuntimeError("while mending") from k
app.errors.Mending: while mending
`;

const GROUP = `  + Exception Group Traceback (most recent call last):
  |   File "/srv/app/tasks.py", line 22, in run
  |     try: group()
  |          ~~~~~^^
  | ExceptionGroup: both (2 sub-exceptions)
  | a note
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/srv/app/tasks.py", line 6, in a
    |     raise KeyError("x")
    | KeyError: 'x'
    |${" "}
    | The above exception was the direct cause of the following exception:
    |${" "}
    | Traceback (most recent call last):
    |   File "/srv/app/tasks.py", line 7, in a
    |     raise LookupError from error
    | LookupError
    +---------------- 2 ----------------
    | Exception Group Traceback (most recent call last):
    |   File "/srv/app/tasks.py", line 8, in b
    |     raise ExceptionGroup("inner", [TypeError(1), OSError(2,"no")])
    | ExceptionGroup: inner (2 sub-exceptions)
    +-+---------------- 1 ----------------
      | TypeError: 1
      +---------------- 2 ----------------
      | FileNotFoundError: [Errno 2] no
      +------------------------------------

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/app/tasks.py", line 23, in <module>
    raise RuntimeError("outer") from e
RuntimeError: outer
`;

const names = (links: readonly Link[]) => links.map((link) => [link.relation, link.errorClass, link.message]);
const frames = (link: Link | undefined) => (link?.entries ?? []).filter(isFrame);

describe("a traceback", () => {
  it("has its frames with source and marks", () => {
    const [link] = parseTraceback(CHAIN).links;
    expect(frames(link)[0]).toEqual<Frame>({
      file: "/srv/app/tasks.py",
      line: 3,
      where: "inner",
      code: ["if n: return inner(n-1)", "             ~~~~~^^^^^"],
      repeated: 7,
      library: null,
    });
  });

  it("is a chain of errors, the last being what was raised", () => {
    expect(names(parseTraceback(CHAIN).links)).toEqual([
      [null, "ValueError", "deep\nsecond line"],
      ["context", "KeyError", "'k'"],
      ["cause", "app.errors.Mending", "while mending"],
    ]);
  });

  it("may hold groups, in groups, in chains", () => {
    const { links } = parseTraceback(GROUP);
    expect(names(links)).toEqual([
      [null, "ExceptionGroup", "both (2 sub-exceptions)\na note"],
      ["cause", "RuntimeError", "outer"],
    ]);
    const [first, second] = links[0]?.members ?? [];
    expect(names(first ?? [])).toEqual([
      [null, "KeyError", "'x'"],
      ["cause", "LookupError", ""],
    ]);
    expect(second?.[0]?.members.map(names)).toEqual([
      [[null, "TypeError", "1"]],
      [[null, "FileNotFoundError", "[Errno 2] no"]],
    ]);
    expect(frames(second?.[0])).toHaveLength(1);
  });

  it("shows where a syntax is wrong", () => {
    const { links } = parseTraceback(
      'Traceback (most recent call last):\n  File "/srv/app/a.py", line 1, in f\n    exec(x)\n  File "<string>", line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n',
    );
    expect(frames(links[0]).map((frame) => [frame.file, frame.where, frame.code])).toEqual([
      ["/srv/app/a.py", "f", ["exec(x)"]],
      ["<string>", null, ["x = = 1", "    ^"]],
    ]);
  });

  it("leaves a message alone that looks like a traceback", () => {
    const { links } = parseTraceback(
      'Traceback (most recent call last):\n  File "/srv/a.py", line 1, in f\n    x()\nRemote: """\nTraceback (most recent call last):\n  File "/other.py", line 9, in g\nValueError: 1\n"""\n',
    );
    expect(links).toHaveLength(1);
    expect(frames(links[0])).toHaveLength(1);
    expect(links[0]?.message).toContain('File "/other.py"');
  });

  it("keeps what was cut as a gap", () => {
    const { links } = parseTraceback(
      'Traceback (most recent call last):\n  File "/srv/a.py", line 1, in f\n    x()\n… 12,000 characters left out …\ne 9, in h\n    y()\n  File "/srv/b.py", line 2, in g\n    z()\nValueError: 1\n',
    );
    expect(links[0]?.entries.map((entry) => (isFrame(entry) ? entry.line : entry.gap))).toEqual([
      1,
      "… 12,000 characters left out …\ne 9, in h\n    y()",
      2,
    ]);
    expect(links[0]?.errorClass).toBe("ValueError");
  });

  it("is no reason to fail when it is none", () => {
    expect(names(parseTraceback("exit status 3").links)).toEqual([[null, "", "exit status 3"]]);
    expect(parseTraceback("").links).toEqual([]);
    expect(names(parseTraceback("ValueError").links)).toEqual([[null, "ValueError", ""]]);
  });
});

describe("whose code a file is", () => {
  it.each([
    ["/srv/app/tasks.py", null],
    ["<string>", null],
    ["/home/me/library/python/tasks.py", null],
    ["/srv/app/.venv/lib/python3.13/site-packages/httpx/_client.py", "httpx"],
    ["/usr/lib/python3/dist-packages/six.py", "six"],
    ["/usr/lib/python3.13/asyncio/tasks.py", "asyncio"],
    ["/home/ada/.pyenv/versions/3.13.0/lib/python3.13/json/decoder.py", "json"],
    ["C:\\Python313\\Lib\\json\\decoder.py", "json"],
    ["<frozen importlib._bootstrap>", "_bootstrap"],
    ["/srv/engine/src/headrace/worker/loop.py", "headrace"],
  ])("%s", (file, library) => {
    expect(libraryOf(file)).toBe(library);
  });
});

describe("folding", () => {
  const frame = (file: string): Frame => ({ file, line: 1, where: "f", code: [], repeated: 0, library: libraryOf(file) });
  const own = frame("/srv/app/tasks.py");
  const asyncio = frame("/usr/lib/python3.13/asyncio/tasks.py");
  const httpx = frame("/v/lib/python3.13/site-packages/httpx/_client.py");

  it("keeps one's own frames open and puts neighbours of libraries together", () => {
    expect(fold([asyncio, own, httpx, httpx, asyncio, own])).toEqual([
      { kind: "library", frames: [asyncio], libraries: ["asyncio"], raised: false },
      { kind: "frame", frame: own, raised: false },
      { kind: "library", frames: [httpx, httpx, asyncio], libraries: ["httpx", "asyncio"], raised: false },
      { kind: "frame", frame: own, raised: true },
    ]);
  });

  it("says that a library raised it", () => {
    expect(fold([own, httpx]).at(-1)).toEqual({ kind: "library", frames: [httpx], libraries: ["httpx"], raised: true });
  });

  it("opens the last frame where none is one's own", () => {
    expect(fold([asyncio, httpx])).toEqual([
      { kind: "library", frames: [asyncio], libraries: ["asyncio"], raised: false },
      { kind: "frame", frame: httpx, raised: true },
    ]);
  });

  it("leaves gaps where they are", () => {
    expect(fold([httpx, { gap: "…" }, httpx, own]).map((each) => each.kind)).toEqual(["library", "gap", "library", "frame"]);
    expect(fold([])).toEqual([]);
  });

  it("shortens paths from the front", () => {
    expect(shortPath("/a/b/c/d.py")).toBe("…/b/c/d.py");
    expect(shortPath("d.py")).toBe("d.py");
  });
});
