import type { Panel } from "@/app/panel";
import { DeadLettersIcon } from "@/ui/icons";

export const panel: Panel = {
  id: "deadletters",
  path: "dead-letters",
  title: "Dead letters",
  icon: DeadLettersIcon,
  group: "work",
  order: 30,
  routes: [
    { index: true, lazy: () => import("./DeadLettersPage") },
    { path: ":group", lazy: () => import("./GroupPage") },
  ],
  shortcuts: [{ keys: "g d", title: "Go to dead letters", run: ({ navigate }) => void navigate("/dead-letters") }],
};
