import type { Panel } from "@/app/panel";
import { QueuesIcon } from "@/ui/icons";

export const panel: Panel = {
  id: "queues",
  path: "queues",
  title: "Queues",
  icon: QueuesIcon,
  group: "operate",
  order: 10,
  routes: [
    { index: true, lazy: () => import("./QueuesPage") },
    { path: ":name", lazy: () => import("./QueuePage") },
  ],
  shortcuts: [{ keys: "g q", title: "Go to queues", run: ({ navigate }) => void navigate("/queues") }],
};
