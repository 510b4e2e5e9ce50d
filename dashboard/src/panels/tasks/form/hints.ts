/** What is said below a field before anything is wrong with it. */

import { nameOf, type FieldModel, type Model } from "./model";

/** What it is for, what is wanted where the field alone does not say it, and whether it may be left out. */
export function hintOf(field: FieldModel): string | undefined {
  const said = [
    field.description?.trim().replace(/\.$/, "") ?? "",
    wantedOf(field.model) ?? "",
    field.required ? "" : "optional",
  ].filter((each) => each !== "");
  return said.length === 0 ? undefined : said.join(" · ");
}

/** Nothing for what everybody sees: a text, a choice, a list. */
export function wantedOf(model: Model): string | undefined {
  switch (model.kind) {
    case "number":
      return `${nameOf(model)}${rangeOf(model)}`;
    case "text":
      return model.format === null ? undefined : model.format === "decimal" ? "number" : model.format;
    case "instant":
      return model.form === "date-time" ? "in your time zone" : undefined;
    case "nullable":
      return wantedOf(model.model);
    case "list":
      return countOf(model.least, model.most);
    case "json":
      return "any JSON";
    default:
      return undefined;
  }
}

function rangeOf({ least, most, above, below }: Extract<Model, { kind: "number" }>): string {
  const low = least ?? (above === null ? null : `above ${above}`);
  const high = most ?? (below === null ? null : `below ${below}`);
  if (low !== null && high !== null) return ` ${low} to ${high}`;
  if (low !== null) return typeof low === "number" ? ` from ${low} on` : ` ${low}`;
  if (high !== null) return typeof high === "number" ? ` up to ${high}` : ` ${high}`;
  return "";
}

function countOf(least: number, most: number | null): string | undefined {
  if (most !== null) return least > 0 ? `${least} to ${most}` : `up to ${most}`;
  return least > 0 ? `at least ${least}` : undefined;
}
