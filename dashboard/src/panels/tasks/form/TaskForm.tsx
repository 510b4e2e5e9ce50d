import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useMemo, useRef, useState, type FormEvent } from "react";
import { useNavigate } from "react-router";

import type { wire } from "@/api";
import { Button, Problem, Section, Tabs, TextArea, useToasts } from "@/ui";

import { commandOf, type CommandDraft } from "./command";
import { CommandFields } from "./CommandFields";
import { isObject, objectDraftOf, type ObjectDraft } from "./draft";
import type { Json, ObjectModel } from "./model";
import { ObjectFields } from "./ObjectFields";
import { optionsOf, type Options, type OptionsDraft } from "./options";
import { OptionsFields } from "./OptionsFields";
import { callOf, payloadOf, readJson, wrongsOf, type Call, type Made, type Wrongs } from "./payload";
import { placed } from "./placing";
import styles from "./Form.module.css";

/** What is asked for: the arguments of a function, or a program. */
export type Subject =
  | { readonly kind: "function"; readonly model: ObjectModel; readonly secrets: readonly string[] }
  | { readonly kind: "command" };

export interface Filled {
  readonly call: Call;
  readonly command: wire.Command | null;
  /** Arguments that are taken from the task that this is a copy of. */
  readonly keep: readonly string[];
  readonly options: Options;
}

interface TaskFormProps {
  readonly subject: Subject;
  readonly values: Readonly<Record<string, Json>>;
  readonly command: CommandDraft;
  readonly options: OptionsDraft;
  readonly kept: readonly string[];
  readonly queues: readonly string[];
  readonly defaults: { readonly queue: string; readonly priority: number };
  readonly isCopy: boolean;
  submit(filled: Filled): Promise<wire.Submitted>;
}

const NO_WRONGS: Wrongs = new Map();

/** Fields, what is wrong with each of them, and the way to the task that it becomes. */
export function TaskForm(props: TaskFormProps) {
  const { subject, queues, defaults, isCopy, submit } = props;
  const model = subject.kind === "function" ? subject.model : null;
  const [kept, setKept] = useState(props.kept);
  const asked = useMemo(() => (model === null ? null : { ...model, fields: model.fields.filter((field) => !kept.includes(field.name)) }), [model, kept]);
  const [draft, setDraft] = useState<ObjectDraft>(() => objectDraftOf(model ?? EMPTY, without(props.values, props.kept)));
  const [json, setJson] = useState<string | null>(null);
  const [command, setCommand] = useState(props.command);
  const [options, setOptions] = useState(props.options);
  const [wasTried, setWasTried] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const stays = useRef(false);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const toasts = useToasts();

  const read = useMemo(() => readArguments(asked, draft, json), [asked, draft, json]);
  const program = useMemo(() => (subject.kind === "command" ? commandOf(command) : null), [subject.kind, command]);
  const chosen = useMemo(() => optionsOf(options), [options]);
  const isRight = read.wrongs.size === 0 && chosen.wrongs.size === 0 && (program === null || program.wrongs.size === 0);

  const sending = useMutation({
    mutationFn: submit,
    onSuccess: (made) => {
      const text = made.created ? `Task ${made.id} is enqueued` : `Task ${made.id} was there already, and is the one`;
      toasts.say(text, `${made.name} in ${made.queue}`);
      void queries.invalidateQueries({ queryKey: ["tasks"] });
      if (!stays.current) void navigate(`/tasks/${made.id}`);
    },
  });
  const names = useMemo(() => asked?.fields.map((field) => field.name) ?? [], [asked]);
  const refused = useMemo(() => placed(sending.error, names), [sending.error, names]);
  const argumentWrongs = wasTried ? merged(refused.args, read.wrongs) : NO_WRONGS;
  const otherWrongs = wasTried ? merged(refused.options, chosen.wrongs, program?.wrongs ?? NO_WRONGS) : NO_WRONGS;
  const wrongCount = argumentWrongs.size + otherWrongs.size;

  function send(event: FormEvent): void {
    event.preventDefault();
    setWasTried(true);
    if (!isRight) {
      sending.reset();
      // Where React has put what is wrong, the first of them is where to go on.
      requestAnimationFrame(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
      return;
    }
    sending.mutate({ call: read.value, command: program?.value ?? null, keep: kept, options: chosen.value });
  }

  /** What the server said was about what was sent before. */
  function touched<Value>(set: (value: Value) => void): (value: Value) => void {
    return (value) => {
      set(value);
      if (sending.error !== null) sending.reset();
    };
  }

  const fields =
    asked === null || subject.kind !== "function" ? null : (
      <ObjectFields
        model={subject.model}
        draft={draft}
        change={touched((next) => next.kind === "object" && setDraft(next))}
        at=""
        wrongs={argumentWrongs}
        secrets={subject.secrets}
        kept={kept}
        replace={(name) => setKept(kept.filter((each) => each !== name))}
      />
    );

  return (
    <form ref={form} className={styles.form} onSubmit={send} noValidate>
      <Section title={subject.kind === "command" ? "Program" : "Arguments"}>
        {subject.kind === "command" && (
          <div className={styles.fields}>
            <CommandFields draft={command} change={touched(setCommand)} wrongs={otherWrongs} />
          </div>
        )}
        {asked !== null && (
          <Tabs
            label="How arguments are written"
            tabs={[
              { id: "fields", title: "Fields" },
              { id: "json", title: "JSON" },
            ]}
            active={json === null ? "fields" : "json"}
            change={(mode) => {
              if (mode === "json" && json === null) setJson(JSON.stringify(payloadOf(asked, draft).value, null, 2));
              if (mode === "fields" && json !== null) {
                const given = readJson(json);
                // What is no JSON yet stays where it can be mended.
                if ("wrong" in given || !isObject(given.value)) {
                  setWasTried(true);
                  return;
                }
                setDraft(objectDraftOf(asked, given.value));
                setJson(null);
              }
            }}
          >
            <div className={styles.fields}>
              {json === null ? (
                hasNothing(asked, draft, kept) ? <p className="muted">It takes none.</p> : fields
              ) : (
                <TextArea
                  label="Arguments by name"
                  hint={kept.length === 0 ? undefined : `Taken as they were: ${kept.join(", ")}`}
                  rows={Math.min(30, Math.max(6, json.split("\n").length + 1))}
                  spellCheck={false}
                  error={[...argumentWrongs].map(([at, message]) => (at === "" ? message : `${at.slice(1)}: ${message}`)).join("; ") || undefined}
                  value={json}
                  onChange={(event) => touched(setJson)(event.target.value)}
                />
              )}
            </div>
          </Tabs>
        )}
      </Section>
      <Section title="Options">
        <OptionsFields
          draft={options}
          change={touched(setOptions)}
          wrongs={otherWrongs}
          queues={queues}
          defaults={defaults}
          withUnique={!isCopy}
        />
      </Section>
      {refused.rest !== null && <Problem title="It was not enqueued" error={refused.rest} />}
      <div className={styles.end}>
        <Button type="submit" kind="primary" busy={sending.isPending} onClick={() => (stays.current = false)}>
          {isCopy ? "Enqueue the copy" : "Enqueue"}
        </Button>
        {!isCopy && (
          <Button type="submit" busy={sending.isPending} onClick={() => (stays.current = true)}>
            Enqueue and stay
          </Button>
        )}
        <span role="status" className={styles.error}>
          {wrongCount > 0 && (wrongCount === 1 ? "One field needs another look" : `${wrongCount} fields need another look`)}
        </span>
      </div>
    </form>
  );
}

const EMPTY: ObjectModel = { kind: "object", fields: [], rest: null, closed: true };

function readArguments(model: ObjectModel | null, draft: ObjectDraft, json: string | null): Made<Call> {
  if (model === null) return { value: { args: [], kwargs: {} }, wrongs: NO_WRONGS };
  let values: Readonly<Record<string, Json>>;
  if (json === null) {
    const made = payloadOf(model, draft);
    if (made.wrongs.size > 0) return { value: { args: [], kwargs: {} }, wrongs: made.wrongs };
    values = made.value;
  } else {
    const read = readJson(json);
    if ("wrong" in read) return { value: { args: [], kwargs: {} }, wrongs: new Map([["", read.wrong]]) };
    const wrongs = wrongsOf(model, read.value);
    if (wrongs.size > 0 || !isObject(read.value)) return { value: { args: [], kwargs: {} }, wrongs };
    values = read.value;
  }
  return callOf(model, values);
}

function hasNothing(model: ObjectModel, draft: ObjectDraft, kept: readonly string[]): boolean {
  return model.fields.length === 0 && model.rest === null && draft.rest.length === 0 && kept.length === 0;
}

function without(values: Readonly<Record<string, Json>>, names: readonly string[]): Readonly<Record<string, Json>> {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)));
}

function merged(...several: readonly ReadonlyMap<string, string>[]): ReadonlyMap<string, string> {
  return new Map(several.flatMap((each) => [...each]));
}
