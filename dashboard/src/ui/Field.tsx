import { useId, type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, type TextareaHTMLAttributes } from "react";

import { classes } from "./classes";
import styles from "./Field.module.css";

interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  /** What is wrong with what was entered. */
  readonly error?: string | undefined;
  /** The label is for those who do not see the field: what it is must then be clear from around it. */
  readonly quiet?: boolean;
  readonly className?: string | undefined;
}

interface Wiring {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": boolean | undefined;
}

/** A label, what is entered, a hint and an error, tied together for those who do not see them. */
export function Field({
  label,
  hint,
  error,
  quiet = false,
  className,
  children,
}: FieldProps & { children(wiring: Wiring): ReactNode }) {
  const id = useId();
  const note = `${id}-note`;
  const hasNote = error !== undefined || hint !== undefined;
  return (
    <div className={classes(styles.field, className)}>
      <label htmlFor={id} className={quiet ? "visually-hidden" : styles.label}>
        {label}
      </label>
      {children({
        id,
        "aria-describedby": hasNote ? note : undefined,
        "aria-invalid": error === undefined ? undefined : true,
      })}
      {hasNote && (
        <div id={note} className={error === undefined ? styles.hint : styles.error}>
          {error ?? hint}
        </div>
      )}
    </div>
  );
}

type InputProps = FieldProps & Omit<InputHTMLAttributes<HTMLInputElement>, "id">;

export function Input({ label, hint, error, quiet, className, ...rest }: InputProps) {
  return (
    <Field {...given({ label, hint, error, quiet, className })}>
      {(wiring) => <input {...rest} {...wiring} className={styles.control} />}
    </Field>
  );
}

type TextAreaProps = FieldProps & Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, "id">;

export function TextArea({ label, hint, error, quiet, className, ...rest }: TextAreaProps) {
  return (
    <Field {...given({ label, hint, error, quiet, className })}>
      {(wiring) => <textarea {...rest} {...wiring} className={classes(styles.control, styles.area)} />}
    </Field>
  );
}

export interface Option<Value extends string = string> {
  readonly value: Value;
  readonly label: string;
}

type SelectProps<Value extends string> = FieldProps &
  Omit<SelectHTMLAttributes<HTMLSelectElement>, "id" | "value" | "onChange"> & {
    readonly options: readonly Option<NoInfer<Value>>[];
    readonly value: Value;
    change(value: NoInfer<Value>): void;
  };

export function Select<Value extends string>({
  label,
  hint,
  error,
  quiet,
  className,
  options,
  value,
  change,
  ...rest
}: SelectProps<Value>) {
  return (
    <Field {...given({ label, hint, error, quiet, className })}>
      {(wiring) => (
        <select
          {...rest}
          {...wiring}
          className={styles.control}
          value={value}
          onChange={(event) => change(event.target.value as Value)}
        >
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function Checkbox({
  label,
  hint,
  ...rest
}: { readonly label: string; readonly hint?: string } & Omit<InputHTMLAttributes<HTMLInputElement>, "type" | "id">) {
  const id = useId();
  return (
    <div className={styles.check}>
      <input {...rest} type="checkbox" id={id} aria-describedby={hint === undefined ? undefined : `${id}-note`} />
      <label htmlFor={id}>
        {label}
        {hint !== undefined && (
          <span id={`${id}-note`} className={styles.hint}>
            {hint}
          </span>
        )}
      </label>
    </div>
  );
}

/** Without members that are undefined: exact optional members take none. */
function given(props: { [Name in keyof FieldProps]: FieldProps[Name] | undefined }): FieldProps {
  return Object.fromEntries(Object.entries(props).filter(([, value]) => value !== undefined)) as unknown as FieldProps;
}
