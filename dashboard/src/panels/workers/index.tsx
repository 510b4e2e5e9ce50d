import type { Panel } from "@/app/panel";
import { WorkersIcon } from "@/ui/icons";

export const panel: Panel = {
  id: "workers",
  path: "workers",
  title: "Workers",
  icon: WorkersIcon,
  group: "observe",
  order: 20,
  routes: [
    { index: true, lazy: () => import("./WorkersPage") },
    { path: ":id", lazy: () => import("./WorkerPage") },
  ],
  shortcuts: [{ keys: "g w", title: "Go to workers", run: ({ navigate }) => void navigate("/workers") }],
};
