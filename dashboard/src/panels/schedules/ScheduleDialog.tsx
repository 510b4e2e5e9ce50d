import { useState } from "react";
import { useNavigate } from "react-router";

import type { wire } from "@/api";
import { Button, Dialog, Problem } from "@/ui";

import { useChange, useCreate } from "./acts";
import { viewerZone } from "./cadence";
import { changeOf, emptyForm, formOf, newSchedule, unsendable, wrongsOf, type Field, type ScheduleForm, type Wrongs } from "./form";
import { Fields } from "./Fields";
import { placed } from "./placing";
import styles from "./Schedules.module.css";

/** Fields that are on the screen for this kind of cadence. */
function shownFields(form: ScheduleForm, isNew: boolean): ReadonlySet<Field> {
  const cadence: readonly Field[] = form.kind === "cron" ? ["cron", "tz"] : form.kind === "every" ? ["every"] : ["at"];
  const atFirst: readonly Field[] = isNew ? ["name", "queue", "priority"] : [];
  return new Set<Field>(["task", "kwargs", "catch_up", "grace", "overlap", "jitter", ...cadence, ...atFirst]);
}

export function NewSchedule({ close }: { close(): void }) {
  const [form, setForm] = useState<ScheduleForm>(() => emptyForm(viewerZone()));
  const [wrongs, setWrongs] = useState<Wrongs>({});
  const navigate = useNavigate();
  const create = useCreate();
  const refused = placed(create.error, shownFields(form, true));

  function save(): void {
    const unsent = unsendable(form.kwargs);
    const found: Wrongs = { ...(unsent === undefined ? {} : { kwargs: unsent }), ...wrongsOf(form) };
    setWrongs(found);
    create.reset();
    if (Object.keys(found).length > 0) return;
    create.mutate(newSchedule(form), { onSuccess: (made) => void navigate(`/schedules/${encodeURIComponent(made.name)}`) });
  }

  return (
    <ScheduleDialog
      title="A new schedule"
      act="Make the schedule"
      form={form}
      change={setForm}
      wrongs={{ ...refused.fields, ...wrongs }}
      problem={refused.rest === null ? null : <Problem title="No schedule was made" error={refused.rest} />}
      before={null}
      isBusy={create.isPending}
      save={save}
      close={close}
    />
  );
}

export function EditSchedule({ schedule, close }: { readonly schedule: wire.ScheduleDetail; close(): void }) {
  // As it was when the form was opened: what others change meanwhile is not taken back by what was never touched here.
  const [before] = useState(() => formOf(schedule, viewerZone()));
  const [form, setForm] = useState(before);
  const [wrongs, setWrongs] = useState<Wrongs>({});
  const change = useChange(schedule.name);
  const refused = placed(change.error, shownFields(form, false));
  const body = Object.keys(wrongsOf(form)).length > 0 ? undefined : changeOf(before, form);

  function save(): void {
    const found: Partial<Record<Field, string>> = { ...wrongsOf(form) };
    // Untouched they are not sent, and stay what they are.
    const unsent = body?.kwargs === undefined ? undefined : unsendable(form.kwargs);
    if (unsent !== undefined) found.kwargs = unsent;
    setWrongs(found);
    change.reset();
    if (Object.keys(found).length > 0 || body === undefined || body === null) return;
    change.mutate(body, { onSuccess: close });
  }

  return (
    <ScheduleDialog
      title={`Edit ${schedule.name}`}
      act="Save the changes"
      form={form}
      change={setForm}
      wrongs={{ ...refused.fields, ...wrongs }}
      note={schedule.declared_by === null ? null : `The code of ${schedule.declared_by} declares it. What you change stands until the code is changed.`}
      problem={refused.rest === null ? null : <Problem title="Nothing was changed" error={refused.rest} />}
      before={before}
      isBusy={change.isPending}
      isSame={body === null}
      save={save}
      close={close}
    />
  );
}

interface ScheduleDialogProps {
  readonly title: string;
  readonly act: string;
  readonly form: ScheduleForm;
  change(form: ScheduleForm): void;
  readonly wrongs: Wrongs;
  readonly note?: string | null;
  readonly problem: React.ReactNode;
  readonly before: ScheduleForm | null;
  readonly isBusy: boolean;
  readonly isSame?: boolean;
  save(): void;
  close(): void;
}

function ScheduleDialog(props: ScheduleDialogProps) {
  const { title, act, form, change, wrongs, note = null, problem, before, isBusy, isSame = false, save, close } = props;
  return (
    <Dialog
      title={title}
      close={close}
      wide
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" type="submit" form="schedule" busy={isBusy} disabled={isSame}>
            {act}
          </Button>
        </>
      }
    >
      <form
        id="schedule"
        className={styles.form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          save();
        }}
      >
        {note !== null && <p className={styles.note}>{note}</p>}
        <Fields form={form} change={change} wrongs={wrongs} before={before} />
        {problem}
      </form>
    </Dialog>
  );
}
