import { describe, expect, it } from "vitest";

import { draftOf, emptyDraft, emptyObject, MOST_FIELDS, objectDraftOf, type Draft, type ObjectDraft } from "./draft";
import { modelOf, nameOf, type Json, type Model, type ObjectModel } from "./model";
// What the server says of a function with a parameter of every kind.
import order from "./order.schema.json";
import { callOf, payloadOf, readJson, wrongsOf } from "./payload";

const model = modelOf(order);
const modelAt = (name: string): Model => {
  const found = model.fields.find((field) => field.name === name);
  if (found === undefined) throw new Error(`no field ${name}`);
  return found.model;
};

const values: Readonly<Record<string, Json>> = {
  customer: "ada",
  amount: 4.2,
  when: "2026-05-01T08:00:00Z",
  day: "2026-05-01",
  colour: "blue",
  level: 2,
  address: { street: "Mill Lane" },
  pay: { kind: "bank", iban: "X1" },
  tags: ["a", "b"],
  matrix: { row: [1, 2] },
  pair: [1, "one"],
  either: "x",
  tree: { name: "root", children: [{ name: "leaf" }] },
  anything: { deep: [null, true] },
  maybe: null,
};

/** The same draft, but for one field. */
function filled(name: string, draft: Draft, isSet = true, of: ObjectDraft = objectDraftOf(model, values)): ObjectDraft {
  return { ...of, fields: { ...of.fields, [name]: { isSet, draft } } };
}

const text = (written: string): Draft => ({ kind: "text", text: written });
const wrongAt = (draft: ObjectDraft, at: string): string | undefined => payloadOf(model, draft).wrongs.get(at);

function object(properties: Record<string, unknown>, more: Record<string, unknown> = {}): ObjectModel {
  return modelOf({ type: "object", properties, required: Object.keys(properties), ...more });
}

describe("a schema becomes fields", () => {
  it.each([
    ["customer", "text"],
    ["amount", "union"],
    ["when", "instant"],
    ["day", "instant"],
    ["colour", "choice"],
    ["level", "choice"],
    ["address", "object"],
    ["pay", "union"],
    ["tags", "list"],
    ["matrix", "map"],
    ["pair", "tuple"],
    ["either", "union"],
    ["tree", "object"],
    ["anything", "json"],
    ["maybe", "nullable"],
    ["*", "list"],
    // Left out it is null already.
    ["note", "text"],
    ["retries", "number"],
    ["dry", "boolean"],
    ["ids", "list"],
    ["token", "text"],
  ])("%s is asked for as %s", (name, kind) => {
    expect(modelAt(name).kind).toBe(kind);
  });

  it("keeps the order, what is required, defaults and descriptions", () => {
    expect(model.fields.map((field) => field.name).slice(0, 3)).toEqual(["customer", "amount", "when"]);
    expect(model.fields.find((field) => field.name === "retries")).toMatchObject({ required: false, byDefault: { value: 3 } });
    expect(model.fields.find((field) => field.name === "customer")).toMatchObject({ required: true, byDefault: null });
    const pay = modelAt("pay");
    expect(pay.kind === "union" && pay.variants.map((variant) => variant.title)).toEqual(["Card", "Bank"]);
    const card = pay.kind === "union" ? pay.variants[0]?.model : undefined;
    expect(card?.kind === "object" && card.fields[1]?.description).toBe("The last four digits");
  });

  it("asks for what holds itself as JSON, once inside", () => {
    const tree = modelAt("tree");
    const children = tree.kind === "object" ? tree.fields[1]?.model : undefined;
    expect(children).toMatchObject({ kind: "list", items: { kind: "json" } });
  });

  it("takes any name where the task does", () => {
    expect(model.rest).toEqual({ kind: "json" });
    expect(modelOf({ type: "object", properties: { a: {} }, additionalProperties: false })).toMatchObject({ rest: null, closed: true });
  });

  it("asks for JSON where there is no schema", () => {
    expect(modelOf(null)).toEqual({ kind: "object", fields: [], rest: { kind: "json" }, closed: false });
    expect(object({ a: {}, b: true, c: { $ref: "#/$defs/gone" }, d: { not: {} } }).fields.map((field) => field.model.kind)).toEqual([
      "json",
      "json",
      "json",
      "json",
    ]);
  });

  it("reads types in lists, and one of several constants as a choice", () => {
    const [a, b, c] = object({
      a: { type: ["string", "null"] },
      b: { anyOf: [{ const: 1 }, { enum: ["x"] }] },
      c: { anyOf: [{ type: "number" }, { type: "string", pattern: "^\\d+$" }] },
    }).fields;
    expect(a?.model).toMatchObject({ kind: "nullable", model: { kind: "text" } });
    expect(b?.model).toEqual({ kind: "choice", options: [{ label: "1", value: 1 }, { label: "x", value: "x" }] });
    expect(c?.model).toMatchObject({ kind: "text", format: "decimal" });
  });

  it("says in words what is wanted", () => {
    expect(nameOf(modelAt("either"))).toBe("whole number or text");
    expect(nameOf(modelAt("maybe"))).toBe("text or null");
  });
});

describe("what was filled in becomes what is sent", () => {
  it("is the same as what was shown", () => {
    const draft = objectDraftOf(model, values);
    expect(payloadOf(model, draft)).toEqual({ value: values, wrongs: new Map() });
  });

  it("leaves out what is empty and not required", () => {
    const small = object({ a: { type: "integer" } }, { required: [] });
    expect(payloadOf(small, emptyObject(small))).toEqual({ value: {}, wrongs: new Map() });
    expect(payloadOf(model, filled("retries", text(" "))).value).not.toHaveProperty("retries");
    expect(payloadOf(model, filled("ids", emptyDraft(modelAt("ids")), false)).value).not.toHaveProperty("ids");
    expect(payloadOf(model, filled("ids", emptyDraft(modelAt("ids")), true)).value["ids"]).toEqual([]);
    expect(payloadOf(model, filled("dry", { kind: "flag", value: false })).value["dry"]).toBe(false);
  });

  it("says at each field that it is required", () => {
    const { wrongs } = payloadOf(model, emptyObject(model));
    for (const name of ["customer", "when", "day", "colour", "level", "anything"]) expect(wrongs.get(`/${name}`)).toBeTruthy();
    expect(wrongs.get("/address/street")).toContain("Required");
    expect(wrongs.has("/address")).toBe(false);
    expect(wrongs.has("/retries")).toBe(false);
    // A list may be empty.
    expect(wrongs.has("/tags")).toBe(false);
  });

  it("chooses by itself where there is one choice", () => {
    const draft = filled("pay", emptyDraft(modelAt("pay")));
    expect(payloadOf(model, draft).wrongs.has("/pay/kind")).toBe(false);
    expect(wrongAt(draft, "/pay/number")).toContain("Required");
  });

  it.each([
    ["retries", "x", "A whole number, like 42"],
    ["retries", "1.5", "A whole number, like 42"],
    ["retries", "11", "At most 10"],
    ["retries", "-1", "At least 0"],
    ["retries", "99999999999999999", expect.stringContaining("too large to be sent exactly")],
    ["token", "abc", "A UUID"],
    ["anything", "{a: 1}", expect.stringContaining("This is no JSON")],
  ])("%s: %s is refused beside its field", (name, written, message) => {
    expect(wrongAt(filled(name, text(written)), `/${name}`)).toEqual(message);
  });

  it("points into lists and objects", () => {
    const tags: Draft = { kind: "list", items: [{ key: 1, draft: text("a") }, { key: 2, draft: text("") }] };
    expect(wrongAt(filled("tags", tags), "/tags/1")).toContain("Required");
    expect(payloadOf(model, filled("tags", tags)).wrongs.has("/tags")).toBe(false);
    const ids: Draft = { kind: "list", items: [1, 1].map((each, key) => ({ key, draft: text(String(each)) })) };
    expect(wrongAt(filled("ids", ids), "/ids")).toBe("Each only once");
    const matrix: Draft = {
      kind: "map",
      entries: [
        { key: 1, name: "a/b", draft: { kind: "raw", text: '["x"]' } },
        { key: 2, name: "a/b", draft: { kind: "raw", text: "[]" } },
        { key: 3, name: "", draft: { kind: "raw", text: "[]" } },
      ],
    };
    expect(wrongAt(filled("matrix", matrix), "/matrix/a~1b")).toBe("This name is there twice");
    expect(wrongAt(filled("matrix", matrix), "/matrix/")).toBe("Give it a name");
  });

  it("sends an instant of the viewer's zone as the instant that it is", () => {
    const draft = draftOf(modelAt("when"), "2026-05-01T10:00:00+02:00");
    expect(payloadOf(model, filled("when", draft)).value["when"]).toBe("2026-05-01T08:00:00Z");
    // What the field cannot show exactly stays as it is written.
    expect(draftOf(modelAt("when"), "2026-05-01T10:00:00")).toEqual({ kind: "raw", text: '"2026-05-01T10:00:00"' });
    expect(draftOf(modelAt("when"), "2026-05-01T10:00:00.123Z").kind).toBe("raw");
  });

  it("takes raw JSON for any field, and checks it", () => {
    expect(payloadOf(model, filled("customer", { kind: "raw", text: '""' })).value["customer"]).toBe("");
    expect(wrongAt(filled("customer", { kind: "raw", text: "7" }), "/customer")).toBe("Text is wanted here");
    expect(wrongAt(filled("address", { kind: "raw", text: "{}" }), "/address/street")).toBe("Required");
    expect(wrongAt(filled("colour", { kind: "raw", text: '"green"' }), "/colour")).toBe("One of red, blue");
    expect(wrongAt(filled("pay", { kind: "raw", text: '{"kind": "card", "number": "1"}' }), "/pay/number")).toBe(
      "At least 4 characters",
    );
  });

  it("shows what does not fit its field, or is too much, as JSON", () => {
    expect(draftOf(modelAt("customer"), 7)).toEqual({ kind: "raw", text: "7" });
    expect(draftOf(modelAt("customer"), "")).toEqual({ kind: "raw", text: '""' });
    expect(draftOf(modelAt("address"), { street: "x", more: 1 }).kind).toBe("raw");
    expect(draftOf(modelAt("tags"), Array.from({ length: MOST_FIELDS + 1 }, () => "t")).kind).toBe("raw");
    expect(draftOf(modelAt("either"), true).kind).toBe("raw");
  });

  it("keeps arguments that the task has no field for", () => {
    const closed = modelOf({ type: "object", properties: { a: { type: "integer" } }, additionalProperties: false });
    const draft = objectDraftOf(closed, { a: 1, gone: "x" });
    expect(draft.rest).toHaveLength(1);
    expect(payloadOf(closed, draft).wrongs.get("/gone")).toBe("There is no argument «gone»");
  });
});

describe("a call", () => {
  const rest = modelOf({
    type: "object",
    properties: { a: { type: "integer" }, b: { type: "integer", default: 5 }, "*": { type: "array", items: {} }, c: { type: "integer" } },
    required: ["a"],
    additionalProperties: false,
  });

  it("is by name", () => {
    expect(callOf(rest, { a: 1, c: 3, "*": [] }).value).toEqual({ args: [], kwargs: { a: 1, c: 3 } });
  });

  it("gives by its place what stands before more arguments", () => {
    expect(callOf(rest, { a: 1, c: 3, "*": [8, 9] })).toEqual({ value: { args: [1, 5, 8, 9], kwargs: { c: 3 } }, wrongs: new Map() });
    expect(callOf(rest, { "*": [8] }).wrongs.get("/a")).toContain("more arguments");
  });
});

describe("JSON that is written by hand", () => {
  it("is checked as a whole", () => {
    expect(wrongsOf(model, { ...values, level: 9, surplus: 1 })).toEqual(new Map([["/level", "One of 1, 2, 3"]]));
    expect(wrongsOf(model, [])).toEqual(new Map([["", "An object: {…}"]]));
  });

  it("is refused where a number would change", () => {
    expect(readJson('{"id": 12345678901234567}')).toEqual({ wrong: expect.stringContaining("12345678901234567 is too large") as string });
    // A browser reads 9007199254740993 as this one: nobody knows which of them it was.
    expect(readJson('[1, 9007199254740992]')).toHaveProperty("wrong");
    expect(readJson('{"id": "12345678901234567", "ok": 9007199254740991}')).toHaveProperty("value");
  });
});
