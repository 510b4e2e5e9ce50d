import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState, type ReactNode } from "react";

import { asProblem } from "@/api";

import { IconButton } from "./Button";
import { CloseIcon } from "./icons";
import { classes } from "./classes";
import styles from "./Toast.module.css";

interface Said {
  readonly id: number;
  readonly text: string;
  readonly detail: string | null;
  readonly bad: boolean;
}

export interface Toasts {
  /** Something was done. */
  say(text: string, detail?: string): void;
  /** Something was not done: what, and why. Stays until it is closed. */
  fail(text: string, error: unknown): void;
}

const LASTS = 5000;
const MOST = 4;
const ToastContext = createContext<Toasts>({ say: () => undefined, fail: () => undefined });

export function useToasts(): Toasts {
  return useContext(ToastContext);
}

export function ToastProvider({ children }: { readonly children: ReactNode }) {
  const [shown, setShown] = useState<readonly Said[]>([]);
  const next = useRef(1);
  /** null when nothing is shown any more: what is said then needs no end. */
  const timers = useRef<Set<number> | null>(new Set());
  useEffect(() => {
    // In development effects run twice.
    const kept = (timers.current ??= new Set());
    return () => {
      timers.current = null;
      for (const timer of kept) window.clearTimeout(timer);
    };
  }, []);
  const close = useCallback((id: number) => setShown((all) => all.filter((each) => each.id !== id)), []);
  const add = useCallback(
    (text: string, detail: string | null, bad: boolean) => {
      const id = next.current++;
      setShown((all) => [...all.slice(-MOST + 1), { id, text, detail, bad }]);
      if (bad || timers.current === null) return;
      const kept = timers.current;
      const timer = window.setTimeout(() => {
        kept.delete(timer);
        close(id);
      }, LASTS);
      kept.add(timer);
    },
    [close],
  );
  const toasts = useMemo<Toasts>(
    () => ({
      say: (text, detail) => add(text, detail ?? null, false),
      fail: (text, error) => {
        const problem = asProblem(error);
        add(text, problem.detail ?? problem.title, true);
      },
    }),
    [add],
  );
  return (
    <ToastContext value={toasts}>
      {children}
      <div className={styles.region} role="status" aria-live="polite">
        {shown.map((each) => (
          <div key={each.id} className={classes(styles.toast, each.bad && styles.bad)}>
            <div className={styles.text}>
              <strong>{each.text}</strong>
              {each.detail !== null && <p>{each.detail}</p>}
            </div>
            <IconButton label="Close" icon={<CloseIcon />} onClick={() => close(each.id)} />
          </div>
        ))}
      </div>
    </ToastContext>
  );
}
