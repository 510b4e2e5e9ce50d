import { createContext, useCallback, useContext, useEffect, useId, useMemo, useRef, useState, type ReactNode } from "react";

import { Button, IconButton } from "./Button";
import { CloseIcon } from "./icons";
import { Input } from "./Field";
import styles from "./Dialog.module.css";

interface DialogProps {
  readonly title: string;
  close(): void;
  readonly children: ReactNode;
  /** Buttons, at the bottom. */
  readonly actions?: ReactNode;
  readonly wide?: boolean;
}

/** Modal: the browser keeps the focus inside, and Escape closes it. Shown while it is mounted. */
export function Dialog({ title, close, children, actions, wide = false }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const element = dialog.current;
    if (element !== null && !element.open) {
      element.showModal();
      // The browser would begin with the first button, which closes it.
      element.querySelector<HTMLElement>("[data-body] :is(input, select, textarea), [data-first]")?.focus();
    }
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={wide ? `${styles.dialog} ${styles.wide}` : styles.dialog}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) close();
      }}
    >
      <div className={styles.inner}>
        <header className={styles.header}>
          <h2 id={heading}>{title}</h2>
          <IconButton label="Close" icon={<CloseIcon />} onClick={close} />
        </header>
        <div className={styles.body} data-body="">{children}</div>
        {actions !== undefined && <footer className={styles.footer}>{actions}</footer>}
      </div>
    </dialog>
  );
}

export interface Question {
  readonly title: string;
  readonly body?: ReactNode;
  /** How many things it is about. Above `typed`, the number has to be typed before the act. */
  readonly count?: number;
  /** What the button says: "Cancel 1,204 tasks". */
  readonly act: string;
  readonly danger?: boolean;
}

type Ask = (question: Question) => Promise<boolean>;

const ConfirmContext = createContext<Ask>(() => Promise.resolve(false));
const TYPED_FROM = 1000;

/** `const confirm = useConfirm(); if (await confirm({title: …, count, act: …})) …` */
export function useConfirm(): Ask {
  return useContext(ConfirmContext);
}

export function ConfirmProvider({ children }: { readonly children: ReactNode }) {
  const [asked, setAsked] = useState<{ readonly question: Question; answer(yes: boolean): void } | null>(null);
  const ask = useCallback<Ask>(
    (question) =>
      new Promise((resolve) => {
        setAsked({
          question,
          answer: (yes) => {
            setAsked(null);
            resolve(yes);
          },
        });
      }),
    [],
  );
  return (
    <ConfirmContext value={useMemo(() => ask, [ask])}>
      {children}
      {asked !== null && <Confirm question={asked.question} answer={asked.answer} />}
    </ConfirmContext>
  );
}

function Confirm({ question, answer }: { readonly question: Question; answer(yes: boolean): void }) {
  const { title, body, count, act, danger = false } = question;
  const [typed, setTyped] = useState("");
  const mustType = danger && count !== undefined && count >= TYPED_FROM;
  const ready = !mustType || typed.replaceAll(/\D/g, "") === String(count);
  return (
    <Dialog
      title={title}
      close={() => answer(false)}
      actions={
        <>
          {/* Enter does what is harmless. */}
          <Button data-first={danger ? "" : undefined} onClick={() => answer(false)}>
            Keep as it is
          </Button>
          <Button
            kind={danger ? "danger" : "primary"}
            disabled={!ready}
            data-first={danger ? undefined : ""}
            onClick={() => answer(true)}
          >
            {act}
          </Button>
        </>
      }
    >
      <div className="stack">
        {count !== undefined && (
          <p>
            <strong>{count.toLocaleString()}</strong> {count === 1 ? "is" : "are"} concerned.
          </p>
        )}
        {body}
        {mustType && (
          <Input
            label={`Type ${count} to go on`}
            inputMode="numeric"
            autoComplete="off"
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        )}
      </div>
    </Dialog>
  );
}
