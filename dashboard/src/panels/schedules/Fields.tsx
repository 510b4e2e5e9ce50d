import { memo, useId } from "react";

import { Checkbox, Input, Select, TextArea } from "@/ui";

import { chosenQueue, readKwargs, templateOf, type ScheduleForm, type Wrongs } from "./form";
import { CATCH_UPS, OVERLAPS, UNITS } from "./rules";
import styles from "./Schedules.module.css";
import { useRegistry } from "./useRegistry";

interface FieldsProps {
  readonly form: ScheduleForm;
  change(form: ScheduleForm): void;
  readonly wrongs: Wrongs;
  /** As it is stored; null for one that is made. */
  readonly before: ScheduleForm | null;
}

export function Fields({ form, change, wrongs, before }: FieldsProps) {
  const isNew = before === null;
  return (
    <>
      {isNew && (
        <Input
          label="Name"
          autoComplete="off"
          autoFocus
          error={wrongs.name}
          value={form.name}
          onChange={(event) => change({ ...form, name: event.target.value })}
        />
      )}
      <Cadence form={form} change={change} wrongs={wrongs} />
      <Work form={form} change={change} wrongs={wrongs} before={before} />
      <Rules form={form} change={change} wrongs={wrongs} />
      {isNew && (
        <Checkbox
          label="Make it paused"
          hint="It waits for somebody to resume it."
          checked={form.paused}
          onChange={(event) => change({ ...form, paused: event.target.checked })}
        />
      )}
    </>
  );
}

/** Hundreds of them, which do not change with what is written. */
const Zones = memo(function Zones({ id }: { readonly id: string }) {
  return (
    <datalist id={id}>
      {["UTC", ...Intl.supportedValuesOf("timeZone")].map((zone) => (
        <option key={zone} value={zone} />
      ))}
    </datalist>
  );
});

const KINDS = [
  ["cron", "On the clock (cron)"],
  ["every", "At intervals"],
  ["once", "Once"],
] as const;

function Cadence({ form, change, wrongs }: Omit<FieldsProps, "before">) {
  const group = useId();
  const zones = useId();
  return (
    <fieldset className={styles.kinds}>
      <legend>When</legend>
      <div className={styles.radios}>
        {KINDS.map(([kind, label]) => (
          <label key={kind}>
            <input type="radio" name={group} checked={form.kind === kind} onChange={() => change({ ...form, kind })} />
            {label}
          </label>
        ))}
      </div>
      {form.kind === "cron" && (
        <div className={styles.pair}>
          <Input
            label="Cron"
            className={styles.cron}
            spellCheck={false}
            autoComplete="off"
            hint="Minute, hour, day of month, month, day of week; or @daily and its like."
            error={wrongs.cron}
            value={form.cron}
            onChange={(event) => change({ ...form, cron: event.target.value })}
          />
          <Input
            label="Time zone"
            autoComplete="off"
            spellCheck={false}
            list={zones}
            hint="On whose clocks. Empty: UTC."
            error={wrongs.tz}
            value={form.tz}
            onChange={(event) => change({ ...form, tz: event.target.value })}
          />
          <Zones id={zones} />
        </div>
      )}
      {form.kind === "every" && (
        <div className={styles.pair}>
          <Input
            label="Every"
            inputMode="decimal"
            hint="Counted from midnight of 1 January 1970, UTC: each hour is on the hour."
            error={wrongs.every}
            value={form.every}
            onChange={(event) => change({ ...form, every: event.target.value })}
          />
          <Select label="Unit" options={UNITS} value={form.unit} change={(unit) => change({ ...form, unit })} />
        </div>
      )}
      {form.kind === "once" && (
        <Input
          label="Day and time"
          type="datetime-local"
          hint="On your own clock."
          error={wrongs.at}
          value={form.at}
          onChange={(event) => change({ ...form, at: event.target.value })}
        />
      )}
    </fieldset>
  );
}

function Work({ form, change, wrongs, before }: FieldsProps) {
  const isNew = before === null;
  const tasks = useId();
  const queues = useId();
  const registry = useRegistry();
  const known = registry.data?.items.find((task) => task.name === form.task);

  function choose(name: string): void {
    const next = registry.data?.items.find((task) => task.name === name);
    // What somebody wrote is theirs; what stands there by itself follows the task.
    const isUntouched = form.kwargs.trim() === "{}" || form.kwargs === templateOf(known?.schema);
    change({ ...form, task: name, kwargs: isUntouched ? templateOf(next?.schema) : form.kwargs });
  }

  return (
    <>
      <div className={styles.pair}>
        <Input
          label="Task"
          list={tasks}
          autoComplete="off"
          spellCheck={false}
          hint={known?.summary ?? "One that this server knows."}
          error={wrongs.task}
          value={form.task}
          onChange={(event) => choose(event.target.value)}
        />
        <datalist id={tasks}>
          {registry.data?.items.map((task) => (
            <option key={task.name} value={task.name} />
          ))}
        </datalist>
        {isNew && (
          <Input
            label="Queue"
            list={queues}
            autoComplete="off"
            placeholder={known?.queue ?? "that of the task"}
            error={wrongs.queue}
            value={form.queue}
            onChange={(event) => change({ ...form, queue: event.target.value })}
          />
        )}
        {isNew && (
          <Input
            label="Priority"
            inputMode="numeric"
            placeholder="that of the task"
            hint="Higher first."
            error={wrongs.priority}
            value={form.priority}
            onChange={(event) => change({ ...form, priority: event.target.value })}
          />
        )}
        <datalist id={queues}>
          {registry.data?.queues.map((queue) => (
            <option key={queue} value={queue} />
          ))}
        </datalist>
      </div>
      <TextArea
        label="Arguments of each run"
        spellCheck={false}
        rows={Math.min(12, Math.max(3, form.kwargs.split("\n").length))}
        hint={known === undefined ? "A JSON object, by parameter." : <code>{known.signature}</code>}
        error={wrongs.kwargs ?? (readKwargs(form.kwargs) === null ? "This is no JSON object yet" : undefined)}
        value={form.kwargs}
        onChange={(event) => change({ ...form, kwargs: event.target.value })}
      />
      {before !== null && known !== undefined && known.queue !== before.queue && (
        <p className="muted">
          {chosenQueue(before, registry.data?.items.find((task) => task.name === before.task)?.queue) === null
            ? `It goes to the queue of that task, ${known.queue}.`
            : `It stays in the queue ${before.queue}, which was chosen for it.`}
        </p>
      )}
    </>
  );
}

function Rules({ form, change, wrongs }: Omit<FieldsProps, "before">) {
  const hasWrong = wrongs.catch_up ?? wrongs.grace ?? wrongs.overlap ?? wrongs.jitter;
  return (
    <details className={styles.more} {...(hasWrong === undefined ? {} : { open: true })}>
      <summary>When things overlap or nobody was there</summary>
      <div className={styles.pair}>
        <Select
          label="While the last run is not over"
          options={OVERLAPS}
          value={form.overlap}
          error={wrongs.overlap}
          change={(overlap) => change({ ...form, overlap })}
        />
        <Select
          label="Ticks while no scheduler ran"
          options={CATCH_UPS}
          value={form.catchUp}
          error={wrongs.catch_up}
          // Anything else than running beside each other would drop most of the ticks that were asked for.
          change={(catchUp) => change({ ...form, catchUp, ...(catchUp === "all" ? { overlap: "allow" } : {}) })}
        />
        <Input
          label="Grace, in seconds"
          inputMode="decimal"
          hint="How late a tick may be that is not left out."
          error={wrongs.grace}
          value={form.grace}
          onChange={(event) => change({ ...form, grace: event.target.value })}
        />
        <Input
          label="Jitter, in seconds"
          inputMode="decimal"
          hint="Each fire is put off by up to this much."
          error={wrongs.jitter}
          value={form.jitter}
          onChange={(event) => change({ ...form, jitter: event.target.value })}
        />
      </div>
    </details>
  );
}
