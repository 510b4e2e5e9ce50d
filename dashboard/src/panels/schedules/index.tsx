import { may } from "@/app/roles";
import type { Panel } from "@/app/panel";
import { SchedulesIcon } from "@/ui/icons";

export const panel: Panel = {
  id: "schedules",
  path: "schedules",
  title: "Schedules",
  icon: SchedulesIcon,
  group: "operate",
  order: 20,
  // They belong to nobody: users, who see their own things alone, see none of them.
  access: { overseer: true },
  routes: [
    { index: true, lazy: () => import("./SchedulesPage") },
    { path: ":name", lazy: () => import("./SchedulePage") },
  ],
  shortcuts: [{ keys: "g s", title: "Go to schedules", run: ({ navigate }) => void navigate("/schedules") }],
  commands: (session) =>
    may(session, { role: "operator", scope: "control" })
      ? [
          {
            id: "schedules.new",
            title: "New schedule",
            keywords: "cron every create",
            run: ({ navigate }) => void navigate("/schedules?new=yes"),
          },
        ]
      : [],
};
