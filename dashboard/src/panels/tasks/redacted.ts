/** What the server puts in the place of a secret. */

export const REDACTED = "[redacted]";

/** Whether a secret was taken out of it, however deep. */
export function holdsRedacted(value: unknown): boolean {
  if (typeof value === "string") return value.includes(REDACTED);
  if (Array.isArray(value)) return value.some(holdsRedacted);
  if (typeof value === "object" && value !== null) return Object.values(value).some(holdsRedacted);
  return false;
}
