import type { Panel } from "@/app/panel";
import { OverviewIcon } from "@/ui/icons";

export const panel: Panel = {
  id: "overview",
  path: "",
  title: "Overview",
  icon: OverviewIcon,
  group: "observe",
  order: 10,
  routes: [{ index: true, lazy: () => import("./OverviewPage") }],
  shortcuts: [{ keys: "g o", title: "Go to the overview", run: ({ navigate }) => void navigate("/") }],
};
