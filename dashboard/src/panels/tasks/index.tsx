import type { Panel } from "@/app/panel";
import { may, type Session } from "@/app/roles";
import { TasksIcon } from "@/ui/icons";

const maySubmit = (session: Session): boolean => may(session, { role: "user", scope: "submit" });

export const panel: Panel = {
  id: "tasks",
  path: "tasks",
  title: "Tasks",
  icon: TasksIcon,
  group: "work",
  order: 10,
  routes: [
    { index: true, lazy: () => import("./list/TasksPage") },
    { path: "new", lazy: () => import("./form/NewTaskPage") },
    { path: ":id", lazy: () => import("./task/TaskPage") },
    { path: ":id/edit", lazy: () => import("./form/EditTaskPage") },
  ],
  shortcuts: [
    { keys: "g t", title: "Go to tasks", run: ({ navigate }) => void navigate("/tasks") },
    {
      keys: "n",
      title: "New task",
      run: ({ navigate, session }) => {
        if (maySubmit(session)) void navigate("/tasks/new");
      },
    },
  ],
  commands: (session) => [
    ...(maySubmit(session)
      ? [
          {
            id: "tasks.new",
            title: "New task",
            keywords: "submit enqueue run create",
            keys: "n",
            run: ({ navigate }: Parameters<NonNullable<Panel["shortcuts"]>[number]["run"]>[0]) => void navigate("/tasks/new"),
          },
        ]
      : []),
    ...(["failed", "running", "pending"] as const).map((state) => ({
      id: `tasks.${state}`,
      title: `Tasks that are ${state}`,
      run: ({ navigate }: Parameters<NonNullable<Panel["shortcuts"]>[number]["run"]>[0]) => void navigate(`/tasks?q=state:${state}`),
    })),
  ],
};
