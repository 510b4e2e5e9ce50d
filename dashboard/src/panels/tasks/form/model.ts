/**
 * From the JSON Schema of a task's arguments to what a form has to ask for. What a form cannot ask for piece by piece
 * (anything at all, what holds itself, a type without a schema) is asked for as JSON.
 */

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

export type Model =
  | TextModel
  | NumberModel
  | { readonly kind: "boolean" }
  | ChoiceModel
  | InstantModel
  | ObjectModel
  | ListModel
  | { readonly kind: "tuple"; readonly items: readonly Model[] }
  | { readonly kind: "map"; readonly values: Model }
  | { readonly kind: "nullable"; readonly model: Model }
  | { readonly kind: "union"; readonly variants: readonly Variant[] }
  | { readonly kind: "json" };

export interface TextModel {
  readonly kind: "text";
  readonly format: string | null;
  readonly least: number;
  readonly most: number | null;
  readonly pattern: string | null;
}

export interface NumberModel {
  readonly kind: "number";
  readonly whole: boolean;
  readonly least: number | null;
  readonly most: number | null;
  readonly above: number | null;
  readonly below: number | null;
  readonly multipleOf: number | null;
}

export interface ChoiceModel {
  readonly kind: "choice";
  readonly options: readonly { readonly label: string; readonly value: Json }[];
}

export interface InstantModel {
  readonly kind: "instant";
  readonly form: "date" | "date-time" | "time";
}

export interface ObjectModel {
  readonly kind: "object";
  readonly fields: readonly FieldModel[];
  /** What names beside those may hold; null: nothing is asked for beside those. */
  readonly rest: Model | null;
  /** Other names are refused. */
  readonly closed: boolean;
}

export interface ListModel {
  readonly kind: "list";
  readonly items: Model;
  readonly least: number;
  readonly most: number | null;
  readonly unique: boolean;
}

export interface Variant {
  readonly title: string;
  readonly model: Model;
}

export interface FieldModel {
  readonly name: string;
  readonly description: string | null;
  readonly required: boolean;
  /** In a box, for null is a default as well. */
  readonly byDefault: { readonly value: Json } | null;
  readonly model: Model;
}

/** The name under which `*args` stand. */
export const REST = "*";

type Schema = Readonly<Record<string, unknown>>;

interface Around {
  readonly definitions: Readonly<Record<string, unknown>>;
  /** References that are being resolved: one that comes again holds itself. */
  readonly open: readonly string[];
}

const ANYTHING: Model = { kind: "json" };
// Deeper than this nobody fills in fields.
const DEEPEST = 5;

/** The arguments of a task. A schema that is none (or of something else) is a form without fields that takes any name. */
export function modelOf(schema: unknown): ObjectModel {
  const found = read(schema, { definitions: definitionsOf(schema), open: [] }, 0);
  return found.kind === "object" ? found : { kind: "object", fields: [], rest: ANYTHING, closed: false };
}

function read(given: unknown, around: Around, depth: number): Model {
  if (!isSchema(given) || depth > DEEPEST) return ANYTHING;
  const resolved = resolve(given, around);
  if (resolved === null) return ANYTHING;
  const { schema, around: inside } = resolved;
  if ("const" in schema) return choice([schema["const"]]);
  if (Array.isArray(schema["enum"])) return choice(schema["enum"]);
  const several = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(several)) return union(several, inside, depth);
  if (Array.isArray(schema["type"])) {
    return union(schema["type"].map((type) => ({ ...schema, type })), inside, depth);
  }
  switch (schema["type"]) {
    case "string":
      return text(schema);
    case "integer":
    case "number":
      return number(schema);
    case "boolean":
      return { kind: "boolean" };
    case "null":
      return choice([null]);
    case "array":
      return list(schema, inside, depth);
    case "object":
      return object(schema, inside, depth);
    default:
      return isSchema(schema["properties"]) ? object(schema, inside, depth) : ANYTHING;
  }
}

/** The schema that a reference stands for, with what was written beside it. null: it cannot be resolved, or holds itself. */
function resolve(given: Schema, around: Around): { readonly schema: Schema; readonly around: Around } | null {
  let schema = given;
  let open = around.open;
  for (;;) {
    const all = schema["allOf"];
    if (Array.isArray(all)) {
      const { allOf: _, ...rest } = schema;
      if (all.length !== 1 || !isSchema(all[0])) return null;
      schema = { ...all[0], ...rest };
      continue;
    }
    const reference = schema["$ref"];
    if (typeof reference !== "string") return { schema, around: { ...around, open } };
    if (open.includes(reference)) return null;
    const name = /^#\/(?:\$defs|definitions)\/(.+)$/.exec(reference)?.[1];
    const target = name === undefined ? undefined : around.definitions[unescape(name)];
    if (!isSchema(target)) return null;
    open = [...open, reference];
    const { $ref: _, ...rest } = schema;
    schema = { ...target, ...rest };
  }
}

function text(schema: Schema): Model {
  const format = typeof schema["format"] === "string" ? schema["format"] : null;
  if (format === "date" || format === "date-time" || format === "time") return { kind: "instant", form: format };
  return {
    kind: "text",
    format,
    least: numberAt(schema, "minLength") ?? 0,
    most: numberAt(schema, "maxLength"),
    pattern: typeof schema["pattern"] === "string" ? schema["pattern"] : null,
  };
}

function number(schema: Schema): NumberModel {
  return {
    kind: "number",
    whole: schema["type"] === "integer",
    least: numberAt(schema, "minimum"),
    most: numberAt(schema, "maximum"),
    above: numberAt(schema, "exclusiveMinimum"),
    below: numberAt(schema, "exclusiveMaximum"),
    multipleOf: numberAt(schema, "multipleOf"),
  };
}

function choice(values: readonly unknown[]): ChoiceModel {
  return {
    kind: "choice",
    options: values.map((value) => ({ label: typeof value === "string" ? value : JSON.stringify(value), value: value as Json })),
  };
}

function list(schema: Schema, around: Around, depth: number): Model {
  const fixed = schema["prefixItems"];
  if (Array.isArray(fixed)) {
    // A tuple that may go on behind its fixed places is rare, and JSON says it best.
    if (numberAt(schema, "minItems") !== fixed.length || numberAt(schema, "maxItems") !== fixed.length) return ANYTHING;
    return { kind: "tuple", items: fixed.map((each) => read(each, around, depth + 1)) };
  }
  return {
    kind: "list",
    items: read(schema["items"], around, depth + 1),
    least: numberAt(schema, "minItems") ?? 0,
    most: numberAt(schema, "maxItems"),
    unique: schema["uniqueItems"] === true,
  };
}

function object(schema: Schema, around: Around, depth: number): Model {
  const properties = isSchema(schema["properties"]) ? schema["properties"] : {};
  const names = Object.keys(properties);
  const more = schema["additionalProperties"];
  const isOpen = more !== false && (names.length === 0 || more === true || isSchema(more));
  if (names.length === 0 && depth > 0) {
    return { kind: "map", values: isSchema(more) ? read(more, around, depth + 1) : ANYTHING };
  }
  const required = Array.isArray(schema["required"]) ? (schema["required"] as readonly unknown[]) : [];
  return {
    kind: "object",
    fields: names.map((name) => field(name, properties[name], required.includes(name), around, depth)),
    rest: isOpen ? (isSchema(more) ? read(more, around, depth + 1) : ANYTHING) : null,
    closed: more === false,
  };
}

function field(name: string, given: unknown, required: boolean, around: Around, depth: number): FieldModel {
  const schema = isSchema(given) ? given : {};
  const byDefault = "default" in schema ? { value: schema["default"] as Json } : null;
  let model = read(schema, around, depth + 1);
  // Left out it is null already: nobody has to be able to say so.
  if (model.kind === "nullable" && !required && byDefault !== null && byDefault.value === null) model = model.model;
  const description = resolve(schema, around)?.schema["description"] ?? schema["description"];
  return { name, description: typeof description === "string" ? description : null, required, byDefault, model };
}

function union(several: readonly unknown[], around: Around, depth: number): Model {
  const isNull = (each: unknown): boolean => isSchema(each) && (each["type"] === "null" || each["const"] === null);
  const rest = several.filter((each) => !isNull(each));
  const inner = rest.length === 1 ? read(rest[0], around, depth) : distinct(rest, around, depth);
  if (rest.length === several.length) return inner;
  return inner.kind === "json" ? inner : { kind: "nullable", model: inner };
}

function distinct(several: readonly unknown[], around: Around, depth: number): Model {
  const decimal = decimalAmong(several, around);
  if (decimal !== null) return decimal;
  const models = several.map((each) => ({ title: titleOf(each, around), model: read(each, around, depth + 1) }));
  // One that takes anything takes what the others take.
  if (models.some((each) => each.model.kind === "json")) return ANYTHING;
  const choices = models.map((each) => each.model);
  if (choices.every((each) => each.kind === "choice")) {
    return { kind: "choice", options: choices.flatMap((each) => each.options) };
  }
  const titles = new Map<string, number>();
  return {
    kind: "union",
    variants: models.map(({ title, model }) => {
      const wanted = title ?? nameOf(model);
      const count = (titles.get(wanted) ?? 0) + 1;
      titles.set(wanted, count);
      return { title: count === 1 ? wanted : `${wanted} (${count})`, model };
    }),
  };
}

/** A Decimal is a number or a text of digits; as a text it stays exact. */
function decimalAmong(several: readonly unknown[], around: Around): Model | null {
  if (several.length !== 2) return null;
  const found = several.map((each) => (isSchema(each) ? (resolve(each, around)?.schema ?? {}) : {}));
  const digits = found.find(
    (each) => each["type"] === "string" && typeof each["pattern"] === "string" && each["pattern"].includes("\\d"),
  );
  const numeric = found.find((each) => each["type"] === "number");
  if (digits === undefined || numeric === undefined) return null;
  const pattern = String(digits["pattern"]);
  return { kind: "text", format: "decimal", least: 0, most: null, pattern };
}

function titleOf(given: unknown, around: Around): string | null {
  if (!isSchema(given)) return null;
  if (typeof given["title"] === "string") return given["title"];
  const title = resolve(given, around)?.schema["title"];
  return typeof title === "string" ? title : null;
}

/** What a value of it is called. */
export function nameOf(model: Model): string {
  switch (model.kind) {
    case "text":
      return model.format === "decimal" ? "number" : "text";
    case "number":
      return model.whole ? "whole number" : "number";
    case "boolean":
      return "yes or no";
    case "choice":
      return "choice";
    case "instant":
      return { date: "date", "date-time": "date and time", time: "time" }[model.form];
    case "object":
    case "map":
      return "object";
    case "list":
    case "tuple":
      return "list";
    case "nullable":
      return `${nameOf(model.model)} or null`;
    case "union":
      return model.variants.map((variant) => variant.title).join(" or ");
    case "json":
      return "JSON";
  }
}

function definitionsOf(schema: unknown): Readonly<Record<string, unknown>> {
  if (!isSchema(schema)) return {};
  const found = schema["$defs"] ?? schema["definitions"];
  return isSchema(found) ? found : {};
}

function unescape(name: string): string {
  return decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~");
}

function numberAt(schema: Schema, name: string): number | null {
  const found = schema[name];
  return typeof found === "number" ? found : null;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
