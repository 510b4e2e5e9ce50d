/** One value of whatever kind: its fields, or JSON in the place of them. */

import { useId, type ReactNode } from "react";

import { Button, Checkbox, IconButton, Input, Select, TextArea } from "@/ui";
import { classes } from "@/ui/classes";
import { CloseIcon, PlusIcon } from "@/ui/icons";

import { draftOf, emptyDraft, freshKey, isOneControl, MOST_FIELDS, rawDraft, type Draft, type EntryDraft, type ItemDraft } from "./draft";
import { wantedOf } from "./hints";
import type { ChoiceModel, ListModel, Model, NumberModel, TextModel } from "./model";
import { ObjectFields } from "./ObjectFields";
import { pointer, readJson, valueOf, wrongsOf, type Wrongs } from "./payload";
import styles from "./Form.module.css";

export interface ControlProps<M extends Model = Model> {
  readonly model: M;
  readonly draft: Draft;
  change(draft: Draft): void;
  readonly label: string;
  readonly hint?: string | undefined;
  /** JSON Pointer to it. */
  readonly at: string;
  readonly wrongs: Wrongs;
  /** It may be left out; then this is what it is. */
  readonly placeholder?: string | undefined;
  readonly isOptional?: boolean;
  readonly isSecret?: boolean;
  /** The label is for those who do not see the field. */
  readonly quiet?: boolean;
}

export function ModelControl(props: ControlProps): ReactNode {
  const { model, draft } = props;
  if (draft.kind === "raw" || model.kind === "json") return <RawControl {...props} />;
  switch (model.kind) {
    case "text":
      return <TextControl {...props} model={model} />;
    case "number":
      return <NumberControl {...props} model={model} />;
    case "instant":
      return (
        <Input
          {...common(props)}
          type={model.form === "date-time" ? "datetime-local" : model.form}
          step={model.form === "date" ? undefined : 1}
          value={textOf(draft)}
          onChange={(event) => props.change({ kind: "text", text: event.target.value })}
        />
      );
    case "boolean":
      return <FlagControl {...props} />;
    case "choice":
      return <ChoiceControl {...props} model={model} />;
    case "nullable":
      return <NullableControl {...props} model={model} />;
    case "union":
      return <UnionControl {...props} model={model} />;
    case "list":
      return <ListControl {...props} model={model} />;
    case "tuple":
      return (
        <Group {...props}>
          {draft.kind === "list" &&
            draft.items.map((item, place) => (
              <ModelControl
                key={item.key}
                model={model.items[place] ?? { kind: "json" }}
                draft={item.draft}
                change={(next) => props.change({ kind: "list", items: replaced(draft.items, item.key, next) })}
                label={`${props.label} ${place + 1}`}
                hint={wantedOf(model.items[place] ?? { kind: "json" })}
                at={pointer(props.at, place)}
                wrongs={props.wrongs}
              />
            ))}
        </Group>
      );
    case "map":
      return (
        <Group {...props}>
          {draft.kind === "map" && (
            <Entries
              model={model.values}
              entries={draft.entries}
              change={(entries) => props.change({ kind: "map", entries })}
              at={props.at}
              wrongs={props.wrongs}
              label={props.label}
            />
          )}
        </Group>
      );
    case "object":
      return (
        <Group {...props}>
          {draft.kind === "object" && (
            <ObjectFields model={model} draft={draft} change={props.change} at={props.at} wrongs={props.wrongs} />
          )}
        </Group>
      );
  }
}

/** What every field is given. */
function common({ label, hint, at, wrongs, quiet }: ControlProps) {
  return {
    label,
    ...(hint === undefined ? {} : { hint }),
    ...(quiet === undefined ? {} : { quiet }),
    error: wrongs.get(at),
    autoComplete: "off",
    spellCheck: false,
  };
}

function textOf(draft: Draft): string {
  return draft.kind === "text" || draft.kind === "raw" ? draft.text : "";
}

function TextControl(props: ControlProps<TextModel>) {
  const { model, draft, change, placeholder } = props;
  const text = textOf(draft);
  const shared = { ...common(props), ...(placeholder === undefined ? {} : { placeholder }) };
  if (props.isSecret === true) {
    return <Input {...shared} type="password" autoComplete="new-password" value={text} onChange={(event) => change({ kind: "text", text: event.target.value })} />;
  }
  // A text that has lines gets room for them; a field of one line would take them out.
  if (text.includes("\n") || (model.most === null && text.length > 120)) {
    return <TextArea {...shared} rows={Math.min(12, text.split("\n").length + 1)} value={text} onChange={(event) => change({ kind: "text", text: event.target.value })} />;
  }
  return (
    <Input
      {...shared}
      {...(model.format === "decimal" ? { inputMode: "decimal" as const } : {})}
      {...(model.format === "email" ? { inputMode: "email" as const } : {})}
      value={text}
      onPaste={(event) => {
        const pasted = event.clipboardData.getData("text");
        if (!pasted.includes("\n")) return;
        event.preventDefault();
        change({ kind: "text", text: `${text}${pasted}` });
      }}
      onChange={(event) => change({ kind: "text", text: event.target.value })}
    />
  );
}

function NumberControl(props: ControlProps<NumberModel>) {
  return (
    <Input
      {...common(props)}
      {...(props.placeholder === undefined ? {} : { placeholder: props.placeholder })}
      inputMode={props.model.whole ? "numeric" : "decimal"}
      value={textOf(props.draft)}
      onChange={(event) => props.change({ kind: "text", text: event.target.value })}
    />
  );
}

function FlagControl(props: ControlProps) {
  const value = props.draft.kind === "flag" ? props.draft.value : null;
  return (
    <Select
      {...common(props)}
      value={value === null ? "" : String(value)}
      options={[{ value: "", label: leftOut(props) }, { value: "true", label: "true" }, { value: "false", label: "false" }]}
      change={(next) => props.change({ kind: "flag", value: next === "" ? null : next === "true" })}
    />
  );
}

function ChoiceControl(props: ControlProps<ChoiceModel>) {
  const { options } = props.model;
  const at = props.draft.kind === "choice" ? props.draft.at : null;
  if (options.length === 1 && props.isOptional !== true) {
    return <Input {...common(props)} readOnly value={options[0]?.label ?? ""} />;
  }
  return (
    <Select
      {...common(props)}
      value={at === null ? "" : String(at)}
      options={[{ value: "", label: leftOut(props) }, ...options.map((option, place) => ({ value: String(place), label: option.label }))]}
      change={(next) => props.change({ kind: "choice", at: next === "" ? null : Number(next) })}
    />
  );
}

function leftOut({ isOptional, placeholder }: ControlProps): string {
  if (isOptional !== true) return "Choose…";
  return placeholder === undefined ? "Left out" : `Left out: ${placeholder}`;
}

function NullableControl(props: ControlProps<Extract<Model, { kind: "nullable" }>>) {
  const { model, draft, change, label } = props;
  if (draft.kind !== "nullable") return null;
  return (
    <div className={styles.nullable}>
      {draft.isNull ? (
        <Input {...common(props)} readOnly value="null" />
      ) : (
        <ModelControl {...props} model={model.model} draft={draft.draft} change={(inner) => change({ ...draft, draft: inner })} />
      )}
      <Checkbox label={`${label} is null`} checked={draft.isNull} onChange={(event) => change({ ...draft, isNull: event.target.checked })} />
    </div>
  );
}

function UnionControl(props: ControlProps<Extract<Model, { kind: "union" }>>) {
  const { model, draft, change, label } = props;
  if (draft.kind !== "union") return null;
  const variant = model.variants[draft.at];
  const isShort = model.variants.every((each) => isOneControl(each.model));
  return (
    <Group {...props} isAround hint={undefined}>
      <div className={isShort ? styles.either : styles.stacked}>
        <Select
          label={`Kind of ${label}`}
          quiet={isShort}
          className={styles.kind}
          value={String(draft.at)}
          options={model.variants.map((each, place) => ({ value: String(place), label: each.title }))}
          change={(next) => {
            const chosen = model.variants[Number(next)];
            if (chosen !== undefined) change({ kind: "union", at: Number(next), draft: emptyDraft(chosen.model) });
          }}
        />
        {variant !== undefined && (
          <div className={styles.grow}>
            <ModelControl
              {...props}
              quiet
              hint={undefined}
              model={variant.model}
              draft={draft.draft}
              change={(inner) => change({ ...draft, draft: inner })}
            />
          </div>
        )}
      </div>
    </Group>
  );
}

function ListControl(props: ControlProps<ListModel>) {
  const { model, draft, change, label, at, wrongs } = props;
  if (draft.kind !== "list") return null;
  const { items } = draft;
  return (
    <Group {...props}>
      {items.map((item, place) => (
        <div key={item.key} className={styles.item}>
          <div className={styles.grow}>
            <ModelControl
              model={model.items}
              draft={item.draft}
              change={(next) => change({ kind: "list", items: replaced(items, item.key, next) })}
              label={`${label} ${place + 1}`}
              quiet
              at={pointer(at, place)}
              wrongs={wrongs}
            />
          </div>
          <IconButton
            label={`Remove ${label} ${place + 1}`}
            icon={<CloseIcon />}
            onClick={() => change({ kind: "list", items: items.filter((each) => each.key !== item.key) })}
          />
        </div>
      ))}
      <div>
        <Button
          icon={<PlusIcon />}
          disabled={items.length >= (model.most ?? MOST_FIELDS)}
          onClick={() => change({ kind: "list", items: [...items, { key: freshKey(), draft: emptyDraft(model.items) }] })}
        >
          Add {items.length === 0 ? "one" : "another"}
          <span className="visually-hidden"> to {label}</span>
        </Button>
      </div>
    </Group>
  );
}

interface EntriesProps {
  readonly model: Model;
  readonly entries: readonly EntryDraft[];
  change(entries: readonly EntryDraft[]): void;
  readonly at: string;
  readonly wrongs: Wrongs;
  readonly label: string;
}

/** Names and values. */
export function Entries({ model, entries, change, at, wrongs, label }: EntriesProps) {
  return (
    <>
      {entries.map((entry, place) => (
        <div key={entry.key} className={styles.entry}>
          <Input
            label={`Name ${place + 1} of ${label}`}
            quiet
            placeholder="name"
            autoComplete="off"
            spellCheck={false}
            className={styles.name}
            value={entry.name}
            error={entry.name === "" ? wrongs.get(pointer(at, "")) : undefined}
            onChange={(event) => change(entries.map((each) => (each.key === entry.key ? { ...each, name: event.target.value } : each)))}
          />
          <div className={styles.grow}>
            <ModelControl
              model={model}
              draft={entry.draft}
              change={(next) => change(entries.map((each) => (each.key === entry.key ? { ...each, draft: next } : each)))}
              label={`Value ${place + 1} of ${label}`}
              quiet
              at={pointer(at, entry.name)}
              wrongs={wrongs}
            />
          </div>
          <IconButton
            label={`Remove ${entry.name === "" ? `entry ${place + 1}` : entry.name} of ${label}`}
            icon={<CloseIcon />}
            onClick={() => change(entries.filter((each) => each.key !== entry.key))}
          />
        </div>
      ))}
      <div>
        <Button
          icon={<PlusIcon />}
          disabled={entries.length >= MOST_FIELDS}
          onClick={() => change([...entries, { key: freshKey(), name: "", draft: emptyDraft(model) }])}
        >
          Add {entries.length === 0 ? "one" : "another"}
          <span className="visually-hidden"> to {label}</span>
        </Button>
      </div>
    </>
  );
}

interface GroupProps extends ControlProps {
  readonly children: ReactNode;
  /** It stands around one field for the same value, which says itself what is wrong with it. */
  readonly isAround?: boolean;
}

/** Several fields that are one value, with its name around them. */
function Group(props: GroupProps) {
  const { label, hint, at, wrongs, children, model, draft, change, quiet, isAround = false } = props;
  const note = useId();
  const error = isAround ? undefined : wrongs.get(at);
  return (
    <fieldset className={styles.group} aria-describedby={error === undefined && hint === undefined ? undefined : note}>
      <legend className={quiet === true ? "visually-hidden" : styles.legend}>{label}</legend>
      <button type="button" className={classes(styles.switch, styles.corner)} onClick={() => change(toRaw(model, draft))}>
        As JSON<span className="visually-hidden">: {label}</span>
      </button>
      {(error ?? hint) !== undefined && (
        <p id={note} className={error === undefined ? styles.hint : styles.error}>
          {error ?? hint}
        </p>
      )}
      {children}
    </fieldset>
  );
}

function RawControl(props: ControlProps) {
  const { model, draft, change, at, wrongs, label } = props;
  const text = textOf(draft);
  const read = text.trim() === "" ? null : readJson(text);
  const fits = read !== null && "value" in read && wrongsOf(model, read.value).size === 0;
  const deeper = [...wrongs].filter(([each]) => each.startsWith(`${at}/`)).map(([each, message]) => `${each.slice(at.length + 1)}: ${message}`);
  const error = wrongs.get(at) ?? (deeper.length === 0 ? undefined : deeper.join("; "));
  return (
    <div className={styles.raw}>
      <TextArea
        {...common(props)}
        error={error}
        hint={props.hint === undefined ? "JSON" : `${props.hint}${model.kind === "json" ? "" : ", as JSON"}`}
        rows={Math.min(12, Math.max(2, text.split("\n").length))}
        className={styles.json}
        placeholder={props.placeholder ?? '{"key": "value"}, [1, 2], "text", 7, null'}
        value={text}
        onChange={(event) => change({ kind: model.kind === "json" ? "text" : "raw", text: event.target.value })}
      />
      {model.kind !== "json" && (
        <button
          type="button"
          className={styles.switch}
          disabled={read !== null && !fits}
          onClick={() => change(read !== null && "value" in read ? draftOf(model, read.value) : emptyDraft(model))}
        >
          As fields<span className="visually-hidden">: {label}</span>
        </button>
      )}
    </div>
  );
}

function replaced(items: readonly ItemDraft[], key: number, draft: Draft): readonly ItemDraft[] {
  return items.map((item) => (item.key === key ? { ...item, draft } : item));
}

/** What is filled in as JSON, where it is whole. */
function toRaw(model: Model, draft: Draft): Draft {
  const made = valueOf(model, draft);
  return made === undefined ? { kind: "raw", text: "" } : rawDraft(made);
}
