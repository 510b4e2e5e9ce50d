/** When a schedule fires, as the server stores and the form asks for it. Pure. */

export type Cadence =
  | { readonly kind: "cron"; readonly expression: string; readonly tz: string }
  | { readonly kind: "every"; readonly seconds: number }
  | { readonly kind: "once"; readonly at: string };

/** The stored cadence; null for one of a newer version. */
export function readCadence(stored: unknown): Cadence | null {
  if (typeof stored !== "object" || stored === null) return null;
  const { kind, expression, tz, seconds, at } = stored as Readonly<Record<string, unknown>>;
  if (kind === "cron" && typeof expression === "string" && typeof tz === "string") return { kind, expression, tz };
  if (kind === "every" && typeof seconds === "number") return { kind, seconds };
  if (kind === "once" && typeof at === "string") return { kind, at };
  return null;
}

/** On whose clocks it goes; what goes by none has no zone. */
export function zoneOf(cadence: Cadence | null): string | null {
  return cadence?.kind === "cron" ? cadence.tz : null;
}

/** The words of the server without the zone, which stands beside them. */
export function wordsOf(when: string, cadence: Cadence | null): string {
  const zone = zoneOf(cadence);
  return zone === null ? when : when.replace(` (${zone})`, "");
}

const UNITS = [86_400, 3600, 60, 1] as const;

/** Seconds as a number of the largest unit that holds it whole. */
export function inUnits(seconds: number): { readonly count: string; readonly unit: string } {
  const unit = UNITS.find((each) => seconds >= each && seconds % each === 0) ?? 1;
  return { count: String(seconds / unit), unit: String(unit) };
}

/** For <input type="datetime-local">: the viewer's own clock, to the minute. */
export function localInput(instant: string): string {
  const at = new Date(instant);
  if (Number.isNaN(at.getTime())) return "";
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

/** What was entered on the viewer's clock, as an instant; null for none. */
export function instantOf(input: string): string | null {
  const at = new Date(input);
  return input === "" || Number.isNaN(at.getTime()) ? null : at.toISOString();
}

export function viewerZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
