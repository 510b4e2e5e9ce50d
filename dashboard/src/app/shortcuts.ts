/** Keys: one, or one after another ("g t"). They are not heard while somebody writes. */

import { useEffect, useRef, useSyncExternalStore } from "react";

import type { CommandContext, Shortcut } from "./panel";

const PATIENCE = 900; // milliseconds between two keys of one sequence

export class KeySequence {
  private typed: string[] = [];
  private at = 0;

  constructor(private readonly known: readonly string[]) {}

  /** The sequence that this key completes, or null. */
  press(key: string, now: number): string | null {
    if (now - this.at > PATIENCE) this.typed = [];
    this.at = now;
    this.typed.push(key);
    while (this.typed.length > 0) {
      const text = this.typed.join(" ");
      if (this.known.includes(text)) {
        this.typed = [];
        return text;
      }
      if (this.known.some((each) => each.startsWith(`${text} `))) return null;
      this.typed.shift();
    }
    return null;
  }
}

export function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.closest("input, textarea, select, [role=textbox], dialog") !== null)
  );
}

/** Those of the page that is open. */
let ofPage: readonly Shortcut[] = [];
const listeners = new Set<() => void>();

function change(shortcuts: readonly Shortcut[]): void {
  ofPage = shortcuts;
  for (const listener of [...listeners]) listener();
}

/**
 * Keys of a page, for as long as it is shown; `?` lists them with the rest. They win over those of panels.
 * What they do is always what the newest rendering gave.
 */
export function usePageShortcuts(shortcuts: readonly Shortcut[]): void {
  const latest = useRef(shortcuts);
  useEffect(() => {
    latest.current = shortcuts;
  });
  const names = shortcuts.map((shortcut) => `${shortcut.keys} ${shortcut.title}`).join("|");
  useEffect(() => {
    const added = latest.current.map((shortcut, at): Shortcut => ({
      ...shortcut,
      run: (context) => latest.current[at]?.run(context),
    }));
    change([...added, ...ofPage]);
    return () => change(ofPage.filter((shortcut) => !added.includes(shortcut)));
  }, [names]);
}

export function usePageShortcutList(): readonly Shortcut[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => ofPage,
  );
}

export function useShortcuts(shortcuts: readonly Shortcut[], context: CommandContext): void {
  const latest = useRef({ shortcuts, context });
  useEffect(() => {
    latest.current = { shortcuts, context };
  });
  const keys = shortcuts.map((shortcut) => shortcut.keys).join("|");
  useEffect(() => {
    const sequence = new KeySequence(keys.split("|"));
    const pressed = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return;
      if (event.key.length !== 1) return;
      const found = sequence.press(event.key, event.timeStamp);
      if (found === null) return;
      event.preventDefault();
      latest.current.shortcuts.find((shortcut) => shortcut.keys === found)?.run(latest.current.context);
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [keys]);
}
