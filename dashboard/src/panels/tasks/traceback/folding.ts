/** Which frames are seen at first: one's own; those of libraries are one line each time they follow each other. */

import { isFrame, type Entry, type Frame, type Gap } from "./parse";

export type Fold =
  | { readonly kind: "frame"; readonly frame: Frame; readonly raised: boolean }
  | { readonly kind: "library"; readonly frames: readonly Frame[]; readonly libraries: readonly string[]; readonly raised: boolean }
  | { readonly kind: "gap"; readonly gap: Gap };

export function fold(entries: readonly Entry[]): readonly Fold[] {
  const last = entries.findLastIndex(isFrame);
  const hasOwn = entries.some((entry) => isFrame(entry) && entry.library === null);
  const folds: Fold[] = [];
  let run: Frame[] = [];

  const close = (raised: boolean): void => {
    if (run.length === 0) return;
    const libraries = [...new Set(run.map((frame) => frame.library ?? ""))];
    folds.push({ kind: "library", frames: run, libraries, raised });
    run = [];
  };

  entries.forEach((entry, at) => {
    if (!isFrame(entry)) {
      close(false);
      folds.push({ kind: "gap", gap: entry });
      return;
    }
    const raised = at === last;
    // Where nothing is one's own, the place that raised is the one to see.
    if (entry.library === null || (!hasOwn && raised)) {
      close(false);
      folds.push({ kind: "frame", frame: entry, raised });
      return;
    }
    run.push(entry);
    if (raised) close(true);
  });
  close(false);
  return folds;
}

/** "…/tasks/mail.py": the end of a path says which file it is. */
export function shortPath(file: string, parts = 3): string {
  const pieces = file.split(/[\\/]/);
  return pieces.length <= parts ? file : `…/${pieces.slice(-parts).join("/")}`;
}
