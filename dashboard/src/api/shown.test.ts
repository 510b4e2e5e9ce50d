import { expect, it } from "vitest";

import { holdsInexact, holdsRedacted, inexactIn } from "./shown";

it("knows what a secret was taken out of, also of a part of a text", () => {
  for (const value of ["[redacted]", { a: [{ b: "[redacted]" }] }, { dsn: "postgresql://app:[redacted]@db/x" }, ["--password=[redacted]"]]) {
    expect(holdsRedacted(value), JSON.stringify(value)).toBe(true);
  }
  expect(holdsRedacted({ a: "redacted", b: [null, 1, true] })).toBe(false);
});

it("knows numbers that were rounded when they were read", () => {
  expect(holdsInexact(JSON.parse('{"ids": [1, {"account": 9007199254740993}]}'))).toBe(true);
  expect(holdsInexact(JSON.parse("-9007199254740992"))).toBe(true);
  expect(holdsInexact({ id: Number.MAX_SAFE_INTEGER, share: 0.1, name: "9007199254740993", none: null })).toBe(false);
});

it("finds them in a text as well, wherever they stand, and however exact they look by now", () => {
  expect(inexactIn('{"a": 1234567890123456, "b": [-9007199254740993]}')).toMatch(/^-9007199254740993 is too large/);
  expect(inexactIn('{"a": 9007199254740992}')).toMatch(/too large/);
  expect(inexactIn('{"a": 9007199254740991, "9007199254740993": "9007199254740993", "b": 9007199254740993.5}')).toBeNull();
});
