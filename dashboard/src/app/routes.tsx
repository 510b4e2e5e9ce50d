/** From panels to addresses. */

import { Link, useRouteError, type RouteObject } from "react-router";

import { Empty, Page, Problem } from "@/ui";

import type { Panel } from "./panel";
import { SessionGate, useMay } from "./session";
import { Shell } from "./Shell";

export function routesOf(panels: readonly Panel[]): RouteObject[] {
  return [
    {
      path: "/",
      element: (
        <SessionGate>
          <Shell panels={panels} />
        </SessionGate>
      ),
      errorElement: <Broken />,
      children: [
        ...panels.map((panel): RouteObject => ({
          path: panel.path,
          errorElement: <Broken />,
          children: panel.routes.map((route) => guarded(panel, route)),
        })),
        { path: "*", element: <NotFound /> },
      ],
      // Shown while the first page is on its way: nothing, for it is a moment.
      HydrateFallback: () => null,
    },
  ];
}

/** Who opens the address of a page that their role forbids is told so; the server would refuse its data anyway. */
function guarded(panel: Panel, route: RouteObject): RouteObject {
  if (panel.access === undefined) return route;
  const { lazy } = route;
  if (typeof lazy !== "function") return route;
  return {
    ...route,
    lazy: async () => {
      const page = (await lazy()) as { readonly Component?: React.ComponentType };
      return { ...page, Component: () => <Guard panel={panel} Component={page.Component} /> };
    },
  } as RouteObject;
}

function Guard({ panel, Component }: { readonly panel: Panel; readonly Component: React.ComponentType | undefined }) {
  const may = useMay();
  if (panel.access !== undefined && !may(panel.access)) {
    return (
      <Page title={panel.title}>
        <Empty title="Your role does not reach this">
          It needs the role {panel.access.role ?? "viewer"}; an admin can give it to you.
        </Empty>
      </Page>
    );
  }
  return Component === undefined ? null : <Component />;
}

export function NotFound() {
  return (
    <Page title="Not found">
      <Empty title="There is nothing at this address" action={<Link to="/">Go to the overview</Link>}>
        A link may be old, or its panel is not part of this server.
      </Empty>
    </Page>
  );
}

function Broken() {
  const error = useRouteError();
  return (
    <Page title="Something went wrong">
      <Problem error={error} title="This page could not be shown" retry={() => window.location.reload()} />
    </Page>
  );
}
