import type { Panel } from "@/app/panel";
import { BreakersIcon } from "@/ui/icons";

export const panel: Panel = {
  id: "breakers",
  path: "breakers",
  title: "Breakers",
  icon: BreakersIcon,
  group: "operate",
  order: 30,
  routes: [
    { index: true, lazy: () => import("./BreakersPage") },
    { path: ":service", lazy: () => import("./BreakerPage") },
  ],
  shortcuts: [{ keys: "g b", title: "Go to breakers", run: ({ navigate }) => void navigate("/breakers") }],
};
