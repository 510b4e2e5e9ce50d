/** What a panel says of itself. The file `src/panels/<name>/index.tsx` exports one as `panel`, and nothing else is touched. */

import type { ComponentType } from "react";
import type { NavigateFunction, RouteObject } from "react-router";

import type { Access, Session } from "./roles";

/** Headings of the navigation, in this order. */
export const GROUPS = ["observe", "work", "operate", "administer"] as const;
export type Group = (typeof GROUPS)[number];

export interface Command {
  readonly id: string;
  readonly title: string;
  /** More words by which it is found. */
  readonly keywords?: string;
  /** Keys that do the same, as they are shown: "g t". */
  readonly keys?: string;
  run(context: CommandContext): void;
}

export interface CommandContext {
  readonly navigate: NavigateFunction;
  readonly session: Session;
}

export interface Shortcut {
  /** One key ("n"), or one after another ("g t"). Letters, digits and "/" only; never with Ctrl or Alt. */
  readonly keys: string;
  readonly title: string;
  run(context: CommandContext): void;
}

export interface Panel {
  readonly id: string;
  /** The first part of its addresses, without slashes: "tasks". Empty for the page at "/". */
  readonly path: string;
  readonly title: string;
  readonly icon: ComponentType;
  readonly group: Group;
  /** Within its group. Leave gaps: 10, 20, 30. */
  readonly order: number;
  /** Left out: whoever may log in. */
  readonly access?: Access;
  /** Below its path. Pages are loaded when they are opened: `lazy: () => import("./JobsPage")`, which exports Component. */
  readonly routes: readonly RouteObject[];
  /** For the palette. Opening the panel is there by itself. */
  commands?(session: Session): readonly Command[];
  readonly shortcuts?: readonly Shortcut[];
}

export interface PanelModule {
  readonly panel: Panel;
}

/** Panels in the order of the navigation. Throws where two cannot live side by side. */
export function collect(modules: Readonly<Record<string, PanelModule>>): readonly Panel[] {
  const ids = new Map<string, string>();
  const paths = new Map<string, string>();
  const keys = new Map<string, string>();
  const panels = Object.entries(modules).map(([file, module]) => {
    const { panel } = module;
    if (panel === undefined) throw new Error(`${file} exports no panel`);
    claim(ids, panel.id, file, "id");
    claim(paths, panel.path, file, "path");
    if (panel.path.includes("/")) throw new Error(`${file}: the path ${panel.path} is more than one part of an address`);
    for (const shortcut of panel.shortcuts ?? []) claim(keys, shortcut.keys, file, "shortcut");
    return panel;
  });
  return panels.sort(
    (one, other) =>
      GROUPS.indexOf(one.group) - GROUPS.indexOf(other.group) ||
      one.order - other.order ||
      one.title.localeCompare(other.title),
  );
}

function claim(taken: Map<string, string>, what: string, file: string, kind: string): void {
  const other = taken.get(what);
  if (other !== undefined) throw new Error(`${file} and ${other} have the same ${kind}: ${JSON.stringify(what)}`);
  taken.set(what, file);
}
