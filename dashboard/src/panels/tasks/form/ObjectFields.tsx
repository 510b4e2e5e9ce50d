import { Button, Checkbox } from "@/ui";

import { emptyDraft, isOneControl, type Draft, type FieldDraft, type ObjectDraft } from "./draft";
import { hintOf } from "./hints";
import { REST, type FieldModel, type Json, type ObjectModel } from "./model";
import { Entries, ModelControl } from "./ModelControl";
import { pointer, type Wrongs } from "./payload";
import styles from "./Form.module.css";

interface ObjectFieldsProps {
  readonly model: ObjectModel;
  readonly draft: ObjectDraft;
  change(draft: Draft): void;
  readonly at: string;
  readonly wrongs: Wrongs;
  /** Names of what is not shown while it is written. */
  readonly secrets?: readonly string[];
  /** Arguments that are taken as they were, because they are not shown; and to give one anew. */
  readonly kept?: readonly string[];
  replace?(name: string): void;
}

/** The fields of an object, one below the other. */
export function ObjectFields({ model, draft, change, at, wrongs, secrets = [], kept = [], replace }: ObjectFieldsProps) {
  const set = (name: string, field: FieldDraft): void => change({ ...draft, fields: { ...draft.fields, [name]: field } });
  return (
    <>
      {model.fields.map((field) =>
        kept.includes(field.name) ? (
          <Kept key={field.name} name={labelOf(field.name)} replace={() => replace?.(field.name)} />
        ) : (
          <FieldShown
            key={field.name}
            field={field}
            given={draft.fields[field.name] ?? { isSet: field.required, draft: emptyDraft(field.model) }}
            change={(next) => set(field.name, next)}
            at={pointer(at, field.name)}
            wrongs={wrongs}
            isSecret={secrets.includes(field.name)}
          />
        ),
      )}
      {(model.rest !== null || draft.rest.length > 0) && (
        <fieldset className={styles.group}>
          <legend className={styles.legend}>{model.fields.length === 0 ? "Arguments" : "More arguments"}</legend>
          <Entries
            model={model.rest ?? { kind: "json" }}
            entries={draft.rest}
            change={(rest) => change({ ...draft, rest })}
            at={at}
            wrongs={wrongs}
            label="more arguments"
          />
        </fieldset>
      )}
    </>
  );
}

interface FieldShownProps {
  readonly field: FieldModel;
  readonly given: FieldDraft;
  change(given: FieldDraft): void;
  readonly at: string;
  readonly wrongs: Wrongs;
  readonly isSecret: boolean;
}

function FieldShown({ field, given, change, at, wrongs, isSecret }: FieldShownProps) {
  const label = labelOf(field.name);
  const byDefault = field.byDefault === null ? undefined : shown(field.byDefault.value);
  const control = (
    <ModelControl
      model={field.model}
      draft={given.draft}
      change={(draft) => change({ isSet: true, draft })}
      label={label}
      hint={hintOf(field)}
      at={at}
      wrongs={wrongs}
      placeholder={field.required ? undefined : byDefault}
      isOptional={!field.required}
      isSecret={isSecret}
    />
  );
  if (field.required || isOneControl(field.model)) return control;
  // What is several controls is not empty by itself: whether it is given has to be said.
  return (
    <div className={styles.optional}>
      <Checkbox
        label={`Give ${label}`}
        {...(byDefault === undefined ? {} : { hint: `Left out: ${byDefault}` })}
        checked={given.isSet}
        onChange={(event) => change({ ...given, isSet: event.target.checked })}
      />
      {given.isSet && control}
    </div>
  );
}

function Kept({ name, replace }: { readonly name: string; replace(): void }) {
  return (
    <div className={styles.kept}>
      <span className={styles.legend}>{name}</span>
      <span className="muted">A secret is in it, or a number that is too large for a browser, and so it is not shown. It is taken as it was.</span>
      <Button onClick={replace}>
        Give it anew<span className="visually-hidden">: {name}</span>
      </Button>
    </div>
  );
}

function labelOf(name: string): string {
  return name === REST ? "More (*args)" : name;
}

/** As it would be written into the field. */
function shown(value: Json): string {
  const text = typeof value === "string" && value !== "" ? value : JSON.stringify(value);
  return text.length <= 60 ? text : `${text.slice(0, 59)}…`;
}
