/**
 * What somebody has filled in so far. It may be half a number: it is what they see, and becomes a value only when they
 * submit it. Any part may be raw JSON in the place of its fields.
 */

import type { FieldModel, Json, Model, ObjectModel } from "./model";

export type Draft =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "flag"; readonly value: boolean | null }
  /** The place of an option; null: none yet. */
  | { readonly kind: "choice"; readonly at: number | null }
  | { readonly kind: "object"; readonly fields: Readonly<Record<string, FieldDraft>>; readonly rest: readonly EntryDraft[] }
  | { readonly kind: "list"; readonly items: readonly ItemDraft[] }
  | { readonly kind: "map"; readonly entries: readonly EntryDraft[] }
  | { readonly kind: "nullable"; readonly isNull: boolean; readonly draft: Draft }
  | { readonly kind: "union"; readonly at: number; readonly draft: Draft }
  | { readonly kind: "raw"; readonly text: string };

export interface FieldDraft {
  /** Whether it is part of what is sent. For what is one field this goes by whether something is in it. */
  readonly isSet: boolean;
  readonly draft: Draft;
}

export interface ItemDraft {
  /** Stays with it when others are removed. */
  readonly key: number;
  readonly draft: Draft;
}

export interface EntryDraft extends ItemDraft {
  readonly name: string;
}

export type ObjectDraft = Extract<Draft, { readonly kind: "object" }>;

/** More than this is edited as JSON: nobody goes through a thousand fields. */
export const MOST_FIELDS = 50;

let nextKey = 1;

export function freshKey(): number {
  return nextKey++;
}

export function emptyDraft(model: Model): Draft {
  switch (model.kind) {
    case "text":
    case "number":
    case "instant":
    case "json":
      return { kind: "text", text: "" };
    case "boolean":
      return { kind: "flag", value: null };
    case "choice":
      // What has one possible value has it.
      return { kind: "choice", at: model.options.length === 1 ? 0 : null };
    case "object":
      return emptyObject(model);
    case "list":
      return {
        kind: "list",
        items: Array.from({ length: Math.min(model.least, MOST_FIELDS) }, () => ({ key: freshKey(), draft: emptyDraft(model.items) })),
      };
    case "tuple":
      return { kind: "list", items: model.items.map((item) => ({ key: freshKey(), draft: emptyDraft(item) })) };
    case "map":
      return { kind: "map", entries: [] };
    case "nullable":
      return { kind: "nullable", isNull: false, draft: emptyDraft(model.model) };
    case "union": {
      const first = model.variants[0];
      return { kind: "union", at: 0, draft: first === undefined ? { kind: "raw", text: "" } : emptyDraft(first.model) };
    }
  }
}

export function emptyObject(model: ObjectModel): ObjectDraft {
  const fields = model.fields.map((field) => [field.name, { isSet: field.required, draft: emptyDraft(field.model) }] as const);
  return { kind: "object", fields: Object.fromEntries(fields), rest: [] };
}

/** Whether what is one control: whether it is sent goes by whether something is in it. */
export function isOneControl(model: Model): boolean {
  return ["text", "number", "boolean", "choice", "instant", "json"].includes(model.kind);
}

export function isBlank(draft: Draft): boolean {
  switch (draft.kind) {
    case "text":
    case "raw":
      return draft.text.trim() === "";
    case "flag":
      return draft.value === null;
    case "choice":
      return draft.at === null;
    default:
      return false;
  }
}

/** The draft that shows a value, as JSON where the model has no fields for it. */
export function draftOf(model: Model, value: Json): Draft {
  return fitting(model, value) ?? rawDraft(value);
}

export function rawDraft(value: Json): Draft {
  return { kind: "raw", text: JSON.stringify(value, null, 2) };
}

/** The arguments of a call; names that the task does not (any more) have stay, so that nobody loses them unseen. */
export function objectDraftOf(model: ObjectModel, values: Readonly<Record<string, Json>>): ObjectDraft {
  const fields = model.fields.map((field) => [field.name, fieldDraftOf(field, values)] as const);
  const known = new Set(model.fields.map((field) => field.name));
  const rest = Object.entries(values)
    .filter(([name]) => !known.has(name))
    .map(([name, value]) => ({ key: freshKey(), name, draft: draftOf(model.rest ?? { kind: "json" }, value) }));
  return { kind: "object", fields: Object.fromEntries(fields), rest };
}

function fieldDraftOf(field: FieldModel, values: Readonly<Record<string, Json>>): FieldDraft {
  const value = values[field.name];
  if (value === undefined) return { isSet: field.required, draft: emptyDraft(field.model) };
  return { isSet: true, draft: draftOf(field.model, value) };
}

function fitting(model: Model, value: Json): Draft | null {
  switch (model.kind) {
    case "text":
      // An empty field means that it is left out; an empty text has to be seen as one.
      return typeof value === "string" && value !== "" ? { kind: "text", text: value } : null;
    case "number":
      return typeof value === "number" ? { kind: "text", text: String(value) } : null;
    case "instant":
      return typeof value === "string" ? instantDraft(model.form, value) : null;
    case "json":
      return { kind: "text", text: JSON.stringify(value, null, 2) };
    case "boolean":
      return typeof value === "boolean" ? { kind: "flag", value } : null;
    case "choice": {
      const text = JSON.stringify(value);
      const at = model.options.findIndex((option) => JSON.stringify(option.value) === text);
      return at === -1 ? null : { kind: "choice", at };
    }
    case "object":
      return isObject(value) && (model.rest !== null || hasOnly(model, value)) ? objectDraftOf(model, value) : null;
    case "list":
      return isList(value) && value.length <= MOST_FIELDS ? listDraft(value, () => model.items) : null;
    case "tuple":
      return isList(value) && value.length === model.items.length
        ? listDraft(value, (at) => model.items[at] ?? { kind: "json" })
        : null;
    case "map": {
      if (!isObject(value) || Object.keys(value).length > MOST_FIELDS) return null;
      const entries = Object.entries(value).map(([name, each]) => ({ key: freshKey(), name, draft: draftOf(model.values, each) }));
      return { kind: "map", entries };
    }
    case "nullable":
      if (value === null) return { kind: "nullable", isNull: true, draft: emptyDraft(model.model) };
      return { kind: "nullable", isNull: false, draft: draftOf(model.model, value) };
    case "union":
      for (const [at, variant] of model.variants.entries()) {
        const draft = fitting(variant.model, value);
        if (draft !== null) return { kind: "union", at, draft };
      }
      return null;
  }
}

function listDraft(value: readonly Json[], modelAt: (at: number) => Model): Draft {
  return { kind: "list", items: value.map((each, at) => ({ key: freshKey(), draft: draftOf(modelAt(at), each) })) };
}

function instantDraft(form: "date" | "date-time" | "time", value: string): Draft | null {
  if (form === "date") return /^\d{4}-\d{2}-\d{2}$/.test(value) ? { kind: "text", text: value } : null;
  if (form === "time") return /^\d{2}:\d{2}(:\d{2})?$/.test(value) ? { kind: "text", text: value } : null;
  // Without an offset nobody knows which instant it is; finer than a second the field cannot show.
  if (!/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?(?:\.0+)?(Z|[+-]\d{2}:\d{2})$/.test(value)) return null;
  const at = new Date(value);
  return Number.isNaN(at.getTime()) ? null : { kind: "text", text: localInput(at) };
}

/** As a field for a date and a time takes it: in the viewer's zone. */
export function localInput(at: Date): string {
  const two = (number: number): string => String(number).padStart(2, "0");
  const day = `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day}T${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

function hasOnly(model: ObjectModel, value: Readonly<Record<string, Json>>): boolean {
  return Object.keys(value).every((name) => model.fields.some((field) => field.name === name));
}

export function isObject(value: Json): value is { readonly [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
