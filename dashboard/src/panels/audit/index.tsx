import type { Panel } from "@/app/panel";
import { AuditIcon } from "@/ui/icons";

export const panel: Panel = {
  id: "audit",
  path: "audit",
  title: "Audit log",
  icon: AuditIcon,
  group: "administer",
  order: 20,
  access: { role: "admin", scope: "admin" },
  routes: [{ index: true, lazy: () => import("./AuditPage") }],
  shortcuts: [{ keys: "g l", title: "Go to the audit log", run: ({ navigate }) => void navigate("/audit") }],
};
