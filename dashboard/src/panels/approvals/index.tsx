import type { Panel } from "@/app/panel";
import { ApprovalsIcon } from "@/ui/icons";

export const panel: Panel = {
  id: "approvals",
  path: "approvals",
  title: "Approvals",
  icon: ApprovalsIcon,
  group: "work",
  order: 40,
  access: { role: "operator", scope: "control" },
  routes: [{ index: true, lazy: () => import("./ApprovalsPage") }],
  shortcuts: [{ keys: "g a", title: "Go to approvals", run: ({ navigate }) => void navigate("/approvals") }],
};
