import type { Panel } from "@/app/panel";
import { JobsIcon } from "@/ui/icons";

export const panel: Panel = {
  id: "jobs",
  path: "jobs",
  title: "Jobs",
  icon: JobsIcon,
  group: "work",
  order: 20,
  routes: [
    { index: true, lazy: () => import("./JobsPage") },
    { path: ":id", lazy: () => import("./JobPage") },
  ],
  shortcuts: [{ keys: "g j", title: "Go to jobs", run: ({ navigate }) => void navigate("/jobs") }],
  commands: () => [
    {
      id: "jobs.running",
      title: "Jobs that run",
      keywords: "running active",
      run: ({ navigate }) => void navigate("/jobs?state=running"),
    },
    {
      id: "jobs.failed",
      title: "Jobs that failed",
      keywords: "error retry",
      run: ({ navigate }) => void navigate("/jobs?state=failed"),
    },
  ],
};
