import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { renderPage } from "@/testing/page";

import { Component } from "./OverviewPage";

it("names itself", async () => {
  renderPage(<Component />);
  expect(await screen.findByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
});
