/** The form of a schedule: from what is stored to what is entered, and from there to what is sent. Pure. */

import { holdsRedacted, inexactIn, type wire } from "@/api";

import { inUnits, instantOf, localInput, readCadence } from "./cadence";

export interface ScheduleForm {
  readonly name: string;
  readonly task: string;
  /** JSON. */
  readonly kwargs: string;
  readonly kind: "cron" | "every" | "once";
  readonly cron: string;
  readonly tz: string;
  readonly every: string;
  /** Seconds. */
  readonly unit: string;
  /** On the viewer's clock. */
  readonly at: string;
  readonly queue: string;
  readonly priority: string;
  readonly catchUp: wire.ScheduleShown["catch_up"];
  readonly grace: string;
  readonly overlap: wire.ScheduleShown["overlap"];
  readonly jitter: string;
  readonly paused: boolean;
}

/** Names of what can be wrong, as the server calls them. */
export const FIELDS = [
  "name",
  "task",
  "kwargs",
  "cron",
  "tz",
  "every",
  "at",
  "queue",
  "priority",
  "catch_up",
  "grace",
  "overlap",
  "jitter",
] as const;
export type Field = (typeof FIELDS)[number];
export type Wrongs = Readonly<Partial<Record<Field, string>>>;

export function emptyForm(zone: string): ScheduleForm {
  return {
    name: "",
    task: "",
    kwargs: "{}",
    kind: "cron",
    cron: "0 9 * * 1-5",
    tz: zone,
    every: "1",
    unit: "3600",
    at: "",
    queue: "",
    priority: "",
    catchUp: "coalesce",
    grace: "60",
    overlap: "skip",
    jitter: "0",
    paused: false,
  };
}

export function formOf(schedule: wire.ScheduleShown, zone: string): ScheduleForm {
  const cadence = readCadence(schedule.cadence);
  const form: ScheduleForm = {
    ...emptyForm(zone),
    name: schedule.name,
    task: schedule.task,
    kwargs: JSON.stringify(schedule.arguments ?? {}, null, 2),
    queue: schedule.queue,
    catchUp: schedule.catch_up,
    grace: String(schedule.grace),
    overlap: schedule.overlap,
    jitter: String(schedule.jitter),
    paused: schedule.paused,
  };
  switch (cadence?.kind) {
    case "cron":
      return { ...form, kind: "cron", cron: cadence.expression, tz: cadence.tz };
    case "every": {
      const { count, unit } = inUnits(cadence.seconds);
      return { ...form, kind: "every", every: count, unit };
    }
    case "once":
      return { ...form, kind: "once", at: localInput(cadence.at) };
    default:
      return form;
  }
}

/** What can be seen to be wrong before it is sent; everything else the server knows better. */
export function wrongsOf(form: ScheduleForm): Wrongs {
  const wrongs: Partial<Record<Field, string>> = {};
  if (form.name.trim() === "") wrongs.name = "Give it a name";
  if (form.task.trim() === "") wrongs.task = "Choose the task that it enqueues";
  if (readKwargs(form.kwargs) === null) wrongs.kwargs = 'Write a JSON object, as {"region": "north"}';
  if (form.kind === "cron" && form.cron.trim() === "") wrongs.cron = "Write five fields, as 30 2 * * 1-5";
  if (form.kind === "every" && !(Number(form.every) > 0)) wrongs.every = "Enter a number above 0";
  if (form.kind === "once" && instantOf(form.at) === null) wrongs.at = "Choose a day and a time";
  for (const rule of ["grace", "jitter"] as const) {
    if (form[rule].trim() === "" || !(Number(form[rule]) >= 0)) wrongs[rule] = "Enter seconds, 0 or more";
  }
  if (form.priority.trim() !== "" && !/^-?\d+$/.test(form.priority.trim())) wrongs.priority = "Enter a whole number, or nothing";
  return wrongs;
}

export function readKwargs(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text.trim() === "" ? "{}" : text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function cadenceOf(form: ScheduleForm): Pick<wire.NewScheduleRequest, "cron" | "tz" | "every" | "at"> {
  switch (form.kind) {
    case "cron":
      return { cron: form.cron.trim(), ...(form.tz.trim() === "" ? {} : { tz: form.tz.trim() }) };
    case "every":
      return { every: Number(form.every) * Number(form.unit) };
    case "once":
      return { at: instantOf(form.at) };
  }
}

/** The body that makes it. */
export function newSchedule(form: ScheduleForm): wire.NewScheduleRequest {
  const priority = form.priority.trim();
  return {
    name: form.name.trim(),
    task: form.task.trim(),
    kwargs: readKwargs(form.kwargs) ?? {},
    ...cadenceOf(form),
    ...(form.queue.trim() === "" ? {} : { queue: form.queue.trim() }),
    ...(priority === "" ? {} : { priority: Number(priority) }),
    catch_up: form.catchUp,
    grace: Number(form.grace),
    overlap: form.overlap,
    jitter: Number(form.jitter),
    paused: form.paused,
  };
}

/** The body that changes it: what is another than before. null where nothing is. */
export function changeOf(before: ScheduleForm, now: ScheduleForm): wire.ScheduleChange | null {
  const then = JSON.stringify(cadenceOf(before));
  const cadence = cadenceOf(now);
  const kwargs = readKwargs(now.kwargs) ?? {};
  const hasOtherTask = now.task !== before.task || JSON.stringify(kwargs) !== JSON.stringify(readKwargs(before.kwargs));
  const change: wire.ScheduleChange = {
    ...(JSON.stringify(cadence) === then ? {} : cadence),
    ...(hasOtherTask ? { task: now.task.trim(), kwargs } : {}),
    ...(now.catchUp === before.catchUp ? {} : { catch_up: now.catchUp }),
    ...(Number(now.grace) === Number(before.grace) ? {} : { grace: Number(now.grace) }),
    ...(now.overlap === before.overlap ? {} : { overlap: now.overlap }),
    ...(Number(now.jitter) === Number(before.jitter) ? {} : { jitter: Number(now.jitter) }),
  };
  return Object.keys(change).length === 0 ? null : change;
}

/** The queue that was chosen for a schedule, whatever its task says; null where it has that of its task. */
export function chosenQueue(before: Pick<ScheduleForm, "queue">, own: string | undefined): string | null {
  return before.queue === own ? null : before.queue;
}

/** Why arguments cannot be sent as they are written, which may be as they were shown; undefined where they can. */
export function unsendable(kwargs: string): string | undefined {
  if (holdsRedacted(readKwargs(kwargs))) return "Write the values that are [redacted] anew: what is changed is sent as a whole";
  return inexactIn(kwargs) ?? undefined;
}

/** Arguments to begin with: what a task's schema asks for, empty. */
export function templateOf(schema: unknown): string {
  if (typeof schema !== "object" || schema === null) return "{}";
  const { properties, required } = schema as { readonly properties?: unknown; readonly required?: unknown };
  if (typeof properties !== "object" || properties === null || !Array.isArray(required)) return "{}";
  const found = required
    .filter((name): name is string => typeof name === "string" && name !== "*")
    .map((name) => [name, sampleOf((properties as Readonly<Record<string, unknown>>)[name])] as const);
  return JSON.stringify(Object.fromEntries(found), null, 2);
}

function sampleOf(schema: unknown): unknown {
  const type = typeof schema === "object" && schema !== null && "type" in schema ? schema.type : undefined;
  switch (type) {
    case "string":
      return "";
    case "integer":
    case "number":
      return 0;
    case "boolean":
      return false;
    case "array":
      return [];
    case "object":
      return {};
    default:
      return null;
  }
}
