import "@/ui/tokens.css";
import "@/ui/base.css";

import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createBrowserRouter, RouterProvider } from "react-router";

import { makeQueryClient } from "@/api/queries";
import { panels } from "@/app/panels";
import { routesOf } from "@/app/routes";
import { apply, followSystem, readChoice } from "@/app/theme";
import { LiveContext, LiveHub } from "@/live";
import { ConfirmProvider, ToastProvider } from "@/ui";

apply(readChoice());
followSystem();

const queries = makeQueryClient();
const live = new LiveHub();
window.addEventListener("online", live.hurry);
const router = createBrowserRouter(routesOf(panels));

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <LiveContext value={live}>
        <ToastProvider>
          <ConfirmProvider>
            <RouterProvider router={router} />
          </ConfirmProvider>
        </ToastProvider>
      </LiveContext>
    </QueryClientProvider>
  </StrictMode>,
);
