/** Every panel that there is, found by its place. */

import { collect, type Panel, type PanelModule } from "./panel";

export const panels: readonly Panel[] = collect(
  import.meta.glob<PanelModule>("../panels/*/index.tsx", { eager: true }),
);
