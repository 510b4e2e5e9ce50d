/** From what was filled in to what is sent, or what is wrong with it and where (JSON Pointers, as the server's). */

import { inexactIn, tooLarge } from "@/api";

import { isBlank, isObject, isOneControl, type Draft, type EntryDraft, type FieldDraft, type ObjectDraft } from "./draft";
import {
  nameOf,
  REST,
  type FieldModel,
  type Json,
  type Model,
  type NumberModel,
  type ObjectModel,
  type TextModel,
} from "./model";

export type Wrongs = ReadonlyMap<string, string>;

export interface Made<Value> {
  readonly value: Value;
  readonly wrongs: Wrongs;
}

export interface Call {
  readonly args: readonly Json[];
  readonly kwargs: Readonly<Record<string, Json>>;
}

/** The values by name. What is wrong has no value in it. */
export function payloadOf(model: ObjectModel, draft: ObjectDraft): Made<Readonly<Record<string, Json>>> {
  const wrongs = new Map<string, string>();
  const value = new Maker(wrongs).object(model, draft, "");
  check(model, value, "", wrongs);
  return { value, wrongs };
}

/**
 * Arguments as a call. `*args` can only be given by their place, and so must everything that stands before them.
 */
export function callOf(model: ObjectModel, values: Readonly<Record<string, Json>>): Made<Call> {
  const { [REST]: rest, ...others } = values;
  const named: Record<string, Json> = others;
  const wrongs = new Map<string, string>();
  if (!Array.isArray(rest) || rest.length === 0) return { value: { args: [], kwargs: named }, wrongs };
  const place = model.fields.findIndex((field) => field.name === REST);
  const args: Json[] = [];
  for (const field of model.fields.slice(0, place)) {
    const value = named[field.name] ?? field.byDefault?.value;
    delete named[field.name];
    if (value === undefined) wrongs.set(pointer("", field.name), "Needed, because there are more arguments behind it");
    else args.push(value);
  }
  return { value: { args: [...args, ...(rest as readonly Json[])], kwargs: named }, wrongs };
}

/** What is wrong with a value that was written as JSON. */
export function wrongsOf(model: Model, value: Json): Wrongs {
  const wrongs = new Map<string, string>();
  check(model, value, "", wrongs);
  return wrongs;
}

export function pointer(above: string, part: string | number): string {
  return `${above}/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** JSON as somebody wrote it; a message where it is none. */
export function readJson(text: string): { readonly value: Json } | { readonly wrong: string } {
  try {
    const value = JSON.parse(text) as Json;
    const wrong = inexactIn(text);
    return wrong === null ? { value } : { wrong };
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    return { wrong: `This is no JSON: ${said}. A text stands in double quotes` };
  }
}

const MISSING = Symbol("missing");
type Value = Json | typeof MISSING;

class Maker {
  constructor(private readonly wrongs: Map<string, string>) {}

  object(model: ObjectModel, draft: ObjectDraft, at: string): Record<string, Json> {
    const found: Record<string, Json> = {};
    for (const field of model.fields) {
      const given = draft.fields[field.name];
      const here = pointer(at, field.name);
      if (given === undefined || (!field.required && isLeftOut(field, given))) {
        if (field.required) this.wrongs.set(here, "Required");
        continue;
      }
      const value = this.make(field.model, given.draft, here);
      if (value !== MISSING) found[field.name] = value;
    }
    this.entries(model.rest ?? { kind: "json" }, draft.rest, at, found);
    return found;
  }

  private make(model: Model, draft: Draft, at: string): Value {
    if (draft.kind === "raw") return this.json(draft.text, at);
    switch (model.kind) {
      case "text":
        if (draft.kind !== "text" || draft.text === "") return this.missing(at, "Required. An empty text can be sent as JSON: \"\"");
        return draft.text;
      case "number":
        return draft.kind === "text" ? this.number(model, draft.text, at) : this.missing(at);
      case "instant":
        return draft.kind === "text" ? this.instant(model.form, draft.text, at) : this.missing(at);
      case "json":
        return draft.kind === "text" ? this.json(draft.text, at) : this.missing(at);
      case "boolean":
        return draft.kind === "flag" && draft.value !== null ? draft.value : this.missing(at);
      case "choice": {
        const option = draft.kind === "choice" && draft.at !== null ? model.options[draft.at] : undefined;
        return option === undefined ? this.missing(at, "Choose one") : option.value;
      }
      case "object":
        return draft.kind === "object" ? this.object(model, draft, at) : this.missing(at);
      case "list":
      case "tuple": {
        if (draft.kind !== "list") return this.missing(at);
        const values = draft.items.map((item, place) => {
          const each = model.kind === "list" ? model.items : (model.items[place] ?? { kind: "json" as const });
          return this.make(each, item.draft, pointer(at, place));
        });
        return values.some((value) => value === MISSING) ? MISSING : (values as Json[]);
      }
      case "map": {
        if (draft.kind !== "map") return this.missing(at);
        const found: Record<string, Json> = {};
        this.entries(model.values, draft.entries, at, found);
        return found;
      }
      case "nullable":
        if (draft.kind !== "nullable") return this.missing(at);
        return draft.isNull ? null : this.make(model.model, draft.draft, at);
      case "union": {
        const variant = draft.kind === "union" ? model.variants[draft.at] : undefined;
        return variant === undefined || draft.kind !== "union" ? this.missing(at) : this.make(variant.model, draft.draft, at);
      }
    }
  }

  private entries(model: Model, entries: readonly EntryDraft[], at: string, found: Record<string, Json>): void {
    for (const entry of entries) {
      const here = pointer(at, entry.name);
      if (entry.name === "") this.wrongs.set(here, "Give it a name");
      else if (Object.hasOwn(found, entry.name)) this.wrongs.set(here, "This name is there twice");
      const value = this.make(model, entry.draft, here);
      if (value !== MISSING && entry.name !== "") found[entry.name] = value;
    }
  }

  private number(model: NumberModel, text: string, at: string): Value {
    const digits = text.trim();
    if (digits === "") return this.missing(at);
    if (model.whole && !/^[+-]?\d+$/.test(digits)) return this.missing(at, "A whole number, like 42");
    const value = Number(digits);
    if (!/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(digits) || !Number.isFinite(value)) {
      return this.missing(at, "A number, like 4.2");
    }
    if (model.whole && !Number.isSafeInteger(value)) return this.missing(at, tooLarge(digits));
    return value;
  }

  private instant(form: "date" | "date-time" | "time", text: string, at: string): Value {
    if (text.trim() === "") return this.missing(at);
    if (form !== "date-time") return text;
    // The field is in the viewer's zone; what is sent says which instant that is.
    const instant = new Date(text);
    if (Number.isNaN(instant.getTime())) return this.missing(at, "A date and a time");
    return instant.toISOString().replace(/\.000Z$/, "Z");
  }

  private json(text: string, at: string): Value {
    if (text.trim() === "") return this.missing(at);
    const read = readJson(text);
    return "wrong" in read ? this.missing(at, read.wrong) : read.value;
  }

  private missing(at: string, why = "Required"): typeof MISSING {
    this.wrongs.set(at, why);
    return MISSING;
  }
}

function isLeftOut(field: FieldModel, given: FieldDraft): boolean {
  return isOneControl(field.model) ? isBlank(given.draft) : !given.isSet;
}

/** Adds what does not fit; a place that is wrong already stays as it is. */
function check(model: Model, value: Json, at: string, wrongs: Map<string, string>): void {
  const say = (why: string): void => {
    if (!wrongs.has(at)) wrongs.set(at, why);
  };
  switch (model.kind) {
    case "text":
      if (typeof value !== "string") say(expected(model));
      else checkText(model, value, say);
      break;
    case "number":
      if (typeof value !== "number" || (model.whole && !Number.isInteger(value))) say(expected(model));
      else checkNumber(model, value, say);
      break;
    case "instant":
      if (typeof value !== "string") say(expected(model));
      break;
    case "boolean":
      if (typeof value !== "boolean") say("true or false");
      break;
    case "choice": {
      const text = JSON.stringify(value);
      if (!model.options.some((option) => JSON.stringify(option.value) === text)) {
        say(`One of ${model.options.map((option) => option.label).join(", ")}`);
      }
      break;
    }
    case "object":
      if (!isObject(value)) say("An object: {…}");
      else checkObject(model, value, at, wrongs);
      break;
    case "list":
      if (!Array.isArray(value)) say("A list: […]");
      else {
        const items = value as readonly Json[];
        items.forEach((each, place) => check(model.items, each, pointer(at, place), wrongs));
        if (items.length < model.least) say(`At least ${model.least}`);
        if (model.most !== null && items.length > model.most) say(`At most ${model.most}`);
        if (model.unique && new Set(items.map((each) => JSON.stringify(each))).size < items.length) say("Each only once");
      }
      break;
    case "tuple":
      if (!Array.isArray(value) || value.length !== model.items.length) say(`A list of ${model.items.length}`);
      else model.items.forEach((item, place) => check(item, (value as readonly Json[])[place] ?? null, pointer(at, place), wrongs));
      break;
    case "map":
      if (!isObject(value)) say("An object: {…}");
      else for (const [name, each] of Object.entries(value)) check(model.values, each, pointer(at, name), wrongs);
      break;
    case "nullable":
      if (value !== null) check(model.model, value, at, wrongs);
      break;
    case "union":
      if (!model.variants.some((variant) => fits(variant.model, value))) {
        // Of one that was chosen in the form its own words are the better ones; the first that has the shape speaks.
        const shaped = model.variants.find((variant) => hasShape(variant.model, value));
        if (shaped === undefined) say(expected(model));
        else check(shaped.model, value, at, wrongs);
      }
      break;
    case "json":
      break;
  }
}

function checkObject(model: ObjectModel, value: Readonly<Record<string, Json>>, at: string, wrongs: Map<string, string>): void {
  for (const field of model.fields) {
    const here = pointer(at, field.name);
    const each = value[field.name];
    if (each !== undefined) check(field.model, each, here, wrongs);
    else if (field.required && !hasBelow(wrongs, here)) wrongs.set(here, "Required");
  }
  for (const [name, each] of Object.entries(value)) {
    if (model.fields.some((field) => field.name === name)) continue;
    const here = pointer(at, name);
    if (model.rest !== null) check(model.rest, each, here, wrongs);
    else if (model.closed && !wrongs.has(here)) wrongs.set(here, `There is no argument «${name}»`);
  }
}

function checkText(model: TextModel, value: string, say: (why: string) => void): void {
  if (value.length < model.least) say(`At least ${model.least} characters`);
  if (model.most !== null && value.length > model.most) say(`At most ${model.most} characters`);
  if (model.pattern !== null && !matches(model.pattern, value)) {
    say(model.format === "decimal" ? "A number, like 4.20" : `Does not match ${model.pattern}`);
  }
  if (model.format === "uuid" && !/^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(value)) say("A UUID");
  if (model.format === "email" && !/^[^@\s]+@[^@\s]+$/.test(value)) say("An address, like ada@example.org");
  if ((model.format === "uri" || model.format === "url") && !URL.canParse(value)) say("An address, like https://example.org/");
}

function checkNumber(model: NumberModel, value: number, say: (why: string) => void): void {
  if (model.least !== null && value < model.least) say(`At least ${model.least}`);
  if (model.most !== null && value > model.most) say(`At most ${model.most}`);
  if (model.above !== null && value <= model.above) say(`More than ${model.above}`);
  if (model.below !== null && value >= model.below) say(`Less than ${model.below}`);
  if (model.multipleOf !== null && Math.abs(Math.round(value / model.multipleOf) * model.multipleOf - value) > 1e-9) {
    say(`A multiple of ${model.multipleOf}`);
  }
}

/** A pattern of Python that JavaScript cannot read is for the server to check. */
function matches(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true;
  }
}

function fits(model: Model, value: Json): boolean {
  const wrongs = new Map<string, string>();
  check(model, value, "", wrongs);
  return wrongs.size === 0;
}

function hasShape(model: Model, value: Json): boolean {
  switch (model.kind) {
    case "text":
    case "instant":
      return typeof value === "string";
    case "number":
      return typeof value === "number";
    case "boolean":
      return typeof value === "boolean";
    case "object":
    case "map":
      return isObject(value);
    case "list":
    case "tuple":
      return Array.isArray(value);
    default:
      return false;
  }
}

/** Whether a part of it is wrong already, and is the reason why it has no value. */
function hasBelow(wrongs: Wrongs, at: string): boolean {
  for (const each of wrongs.keys()) if (each === at || each.startsWith(`${at}/`)) return true;
  return false;
}

function expected(model: Model): string {
  const name = nameOf(model);
  return `${name.charAt(0).toUpperCase()}${name.slice(1)} is wanted here`;
}

/** The value of one part of a form; undefined where something in it is missing or wrong. */
export function valueOf(model: Model, draft: Draft): Json | undefined {
  const field: FieldModel = { name: "value", description: null, required: true, byDefault: null, model };
  const whole: ObjectModel = { kind: "object", fields: [field], rest: null, closed: true };
  const { value, wrongs } = payloadOf(whole, { kind: "object", fields: { value: { isSet: true, draft } }, rest: [] });
  return wrongs.size === 0 ? value["value"] : undefined;
}
