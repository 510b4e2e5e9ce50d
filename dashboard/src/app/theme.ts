/** Dark or light: as the system has it, or as it was chosen here. public/theme.js does the same before the first paint. */

import { useSyncExternalStore } from "react";

export type ThemeChoice = "system" | "dark" | "light";

const KEY = "headrace.theme";
const listeners = new Set<() => void>();

export function readChoice(): ThemeChoice {
  try {
    const found = localStorage.getItem(KEY);
    return found === "dark" || found === "light" ? found : "system";
  } catch {
    return "system";
  }
}

export function choose(choice: ThemeChoice): void {
  try {
    if (choice === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, choice);
  } catch {
    // It holds until the page is left.
  }
  apply(choice);
  for (const listener of [...listeners]) listener();
}

export function apply(choice: ThemeChoice): void {
  const dark = choice === "dark" || (choice === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
}

/** For as long as the page lives: the system may change in the evening. */
export function followSystem(): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(readChoice()));
}

export function useThemeChoice(): ThemeChoice {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, readChoice);
}
