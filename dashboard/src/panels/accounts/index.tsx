import type { Panel } from "@/app/panel";
import { AccountsIcon } from "@/ui/icons";

export const panel: Panel = {
  id: "accounts",
  path: "accounts",
  title: "Users and tokens",
  icon: AccountsIcon,
  group: "administer",
  order: 10,
  routes: [
    { index: true, lazy: () => import("./AccountsPage") },
    { path: ":name", lazy: () => import("./UserPage") },
  ],
  shortcuts: [{ keys: "g u", title: "Go to users and tokens", run: ({ navigate }) => void navigate("/accounts") }],
};
