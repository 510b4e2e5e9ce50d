import { act, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { ToastProvider, useToasts, type Toasts } from "./Toast";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

let toasts: Toasts;

function Sayer() {
  toasts = useToasts();
  return null;
}

function shown() {
  return render(
    <ToastProvider>
      <Sayer />
    </ToastProvider>,
  );
}

it("says what was done for some seconds, and what was not until it is closed", () => {
  shown();
  act(() => toasts.say("mail is paused", "What runs goes on."));
  act(() => toasts.fail("mail was not resumed", new Error("away")));
  expect(screen.getByText("mail is paused")).toBeVisible();
  act(() => void vi.advanceTimersByTime(60_000));
  expect(screen.queryByText("mail is paused")).toBeNull();
  expect(screen.getByText("mail was not resumed")).toBeVisible();
  fireEvent.click(screen.getByRole("button", { name: "Close" }));
  expect(screen.queryByText("mail was not resumed")).toBeNull();
});

it("leaves nothing behind that would come when the page is gone", () => {
  const { unmount } = shown();
  act(() => toasts.say("mail is paused"));
  expect(vi.getTimerCount()).toBe(1);
  unmount();
  expect(vi.getTimerCount()).toBe(0);
  toasts.say("an answer that came late");
  expect(vi.getTimerCount()).toBe(0);
});
