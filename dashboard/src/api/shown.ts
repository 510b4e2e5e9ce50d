/** What is shown of a value and is not the value: sent back, it would take its place. */

/** What the server puts in the place of a secret. */
const REDACTED = "[redacted]";

/** Whether a secret was taken out of it, however deep. */
export function holdsRedacted(value: unknown): boolean {
  return holds(value, (each) => typeof each === "string" && each.includes(REDACTED));
}

/** Whether a whole number in it may be another one in the ledger, which holds 64 bits: those of a browser hold 53. */
export function holdsInexact(value: unknown): boolean {
  return holds(value, (each) => Number.isInteger(each) && !Number.isSafeInteger(each));
}

/** What is wrong with a JSON text in which there is such a number; null where there is none. */
export function inexactIn(json: string): string | null {
  const withoutTexts = json.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""');
  const numbers = withoutTexts.match(/(?<![\w.])-?\d{16,}(?![\d.eE])/g) ?? [];
  const inexact = numbers.find((digits) => !Number.isSafeInteger(Number(digits)));
  return inexact === undefined ? null : tooLarge(inexact);
}

export function tooLarge(digits: string): string {
  return `${digits} is too large to be sent exactly from a browser; submit it from Python or the command line`;
}

function holds(value: unknown, is: (each: unknown) => boolean): boolean {
  if (typeof value === "object" && value !== null) return Object.values(value).some((each) => holds(each, is));
  return is(value);
}
