import { useMay } from "@/app/session";
import { Input, Select } from "@/ui";

import type { OptionsDraft } from "./options";
import styles from "./Form.module.css";

interface OptionsFieldsProps {
  readonly draft: OptionsDraft;
  change(draft: OptionsDraft): void;
  readonly wrongs: ReadonlyMap<string, string>;
  readonly queues: readonly string[];
  /** What holds where nothing is written. */
  readonly defaults: { readonly queue: string; readonly priority: number };
  /** A copy of a task takes no key. */
  readonly withUnique: boolean;
}

/** Where, when and how it runs. */
export function OptionsFields({ draft, change, wrongs, queues, defaults, withUnique }: OptionsFieldsProps) {
  const may = useMay();
  const set = (part: Partial<OptionsDraft>): void => change({ ...draft, ...part });
  const error = (name: string): { readonly error: string | undefined } => ({ error: wrongs.get(name) });
  return (
    <div className={styles.options}>
      <div>
        <Input
          label="Queue"
          list="task-queues"
          autoComplete="off"
          placeholder={defaults.queue}
          {...error("queue")}
          value={draft.queue}
          onChange={(event) => set({ queue: event.target.value })}
        />
        <datalist id="task-queues">
          {queues.map((queue) => (
            <option key={queue} value={queue} />
          ))}
        </datalist>
      </div>
      <Input
        label="Priority"
        inputMode="numeric"
        hint="Higher goes first"
        placeholder={String(defaults.priority)}
        {...error("priority")}
        value={draft.priority}
        onChange={(event) => set({ priority: event.target.value })}
      />
      <Select
        label="Start"
        value={draft.when}
        change={(when) => set({ when })}
        options={[
          { value: "now", label: "as soon as it can" },
          { value: "delay", label: "after a time" },
          { value: "at", label: "at an instant" },
        ]}
      />
      {draft.when === "delay" && (
        <Input
          label="After"
          hint="Like 90, 5m or 1h 30m"
          {...error("delay")}
          value={draft.delay}
          onChange={(event) => set({ delay: event.target.value })}
        />
      )}
      {draft.when === "at" && (
        <Input
          label="At"
          type="datetime-local"
          step={1}
          hint="In your time zone"
          {...error("run_at")}
          value={draft.at}
          onChange={(event) => set({ at: event.target.value })}
        />
      )}
      {withUnique && (
        <Select
          label="Unique"
          value={draft.unique}
          change={(unique) => set({ unique })}
          options={[
            { value: "no", label: "no: it may be there twice" },
            { value: "call", label: "by its name and arguments" },
            { value: "key", label: "by a key" },
          ]}
        />
      )}
      {withUnique && draft.unique === "key" && (
        <Input
          label="Key"
          hint="One unfinished task may hold it"
          autoComplete="off"
          {...error("unique")}
          value={draft.key}
          onChange={(event) => set({ key: event.target.value })}
        />
      )}
      {withUnique && draft.unique !== "no" && (
        <Select
          label="If it is there already"
          value={draft.conflict}
          change={(conflict) => set({ conflict })}
          {...error("on_conflict")}
          options={[
            { value: "return", label: "that one is meant" },
            { value: "reject", label: "refuse this one" },
            ...(may({ role: "operator" }) ? ([{ value: "replace", label: "put this in its place" }] as const) : []),
          ]}
        />
      )}
      <Input
        label="Tags"
        hint="With commas between them"
        autoComplete="off"
        {...error("tags")}
        value={draft.tags}
        onChange={(event) => set({ tags: event.target.value })}
      />
      <Input
        label="Timeout"
        hint="It is stopped after this time, like 5m"
        {...error("timeout")}
        value={draft.timeout}
        onChange={(event) => set({ timeout: event.target.value })}
      />
      <Input
        label="Give up after"
        hint="It fails when it has not started by then"
        {...error("max_age")}
        value={draft.maxAge}
        onChange={(event) => set({ maxAge: event.target.value })}
      />
    </div>
  );
}
