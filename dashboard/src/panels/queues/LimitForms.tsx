import { useState, type FormEvent } from "react";

import { placedErrors } from "@/api";
import { Button, durationText, Input, Problem, Select, type Option } from "@/ui";

import { numberOf, rateForm, wrongNumber, type Queue } from "./figures";
import styles from "./Queues.module.css";
import { useLimiting, useRating } from "./useQueues";

/** How many run at once. Shows what is set; a change is sent when it is saved. */
export function LimitForm({ queue }: { readonly queue: Queue }) {
  const set = queue.limit === null ? "" : String(queue.limit);
  const [entered, setEntered] = useState<string | null>(null);
  const limiting = useLimiting(queue.name);
  const text = entered ?? set;
  const refused = placedErrors(limiting.error, ["n"]);
  const wrong = wrongNumber(text);

  function save(event: FormEvent): void {
    event.preventDefault();
    if (wrong === undefined) limiting.mutate(numberOf(text), { onSuccess: () => setEntered(null) });
  }

  return (
    <form className="stack" onSubmit={save} noValidate>
      <div className={styles.form}>
        <Input
          label="Tasks at once"
          inputMode="numeric"
          placeholder="no limit"
          hint="Over all workers. Empty: no limit."
          error={wrong ?? refused.fields.n}
          value={text}
          onChange={(event) => setEntered(event.target.value)}
        />
        <Button type="submit" disabled={text.trim() === set || wrong !== undefined} busy={limiting.isPending}>
          Save the limit
        </Button>
      </div>
      {refused.rest !== null && <Problem title="The limit was not changed" error={refused.rest} />}
    </form>
  );
}

const UNITS: readonly Option[] = [
  { value: "1", label: "second" },
  { value: "60", label: "minute" },
  { value: "3600", label: "hour" },
  { value: "86400", label: "day" },
];

/** How many start in a time. */
export function RateForm({ queue }: { readonly queue: Queue }) {
  const set = rateForm(queue.rate);
  const [entered, setEntered] = useState<typeof set | null>(null);
  const rating = useRating(queue.name);
  const form = entered ?? set;
  const refused = placedErrors(rating.error, ["n", "per", "burst"]);
  const wrongs = { n: wrongNumber(form.n), burst: wrongNumber(form.burst) };
  const isSame = form.n.trim() === set.n && (form.n.trim() === "" || (form.per === set.per && form.burst.trim() === set.burst));
  const isWrong = wrongs.n !== undefined || wrongs.burst !== undefined;
  // A time that was set elsewhere may be none of these.
  const units = UNITS.some((unit) => unit.value === form.per)
    ? UNITS
    : [...UNITS, { value: form.per, label: durationText(Number(form.per)) }];

  function save(event: FormEvent): void {
    event.preventDefault();
    if (isWrong) return;
    const n = numberOf(form.n);
    const body = n === null ? { n, per: 1 } : { n, per: Number(form.per), burst: numberOf(form.burst) };
    rating.mutate(body, { onSuccess: () => setEntered(null) });
  }

  return (
    <form className="stack" onSubmit={save} noValidate>
      <div className={styles.form}>
        <Input
          label="Starts"
          inputMode="numeric"
          placeholder="no limit"
          hint="Over all workers. Empty: no limit."
          error={wrongs.n ?? refused.fields.n}
          value={form.n}
          onChange={(event) => setEntered({ ...form, n: event.target.value })}
        />
        <Select
          label="In a"
          className={styles.short}
          options={units}
          error={refused.fields.per}
          value={form.per}
          change={(per) => setEntered({ ...form, per })}
        />
        <Input
          label="Most at once"
          className={styles.short}
          inputMode="numeric"
          placeholder="as many as the rate"
          hint="After a quiet time."
          error={wrongs.burst ?? refused.fields.burst}
          value={form.burst}
          onChange={(event) => setEntered({ ...form, burst: event.target.value })}
        />
        <Button type="submit" disabled={isSame || isWrong} busy={rating.isPending}>
          Save the rate
        </Button>
      </div>
      {refused.rest !== null && <Problem title="The rate was not changed" error={refused.rest} />}
    </form>
  );
}
