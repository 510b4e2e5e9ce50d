import { QueryClientProvider } from "@tanstack/react-query";
import { act, renderHook, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { expect, it } from "vitest";

import { makeQueryClient, useListing, type Page } from "./queries";

it("waits for what is being read, however often something is said to have changed", async () => {
  const reads: { readonly signal: AbortSignal; answer(page: Page<number>): void }[] = [];
  const client = makeQueryClient();
  const { result } = renderHook(
    () =>
      useListing<number>(
        ["numbers"],
        (_, signal) =>
          new Promise<Page<number>>((answer) => {
            reads.push({ signal, answer });
          }),
      ),
    { wrapper: ({ children }: { readonly children: ReactNode }) => <QueryClientProvider client={client}>{children}</QueryClientProvider> },
  );
  act(() => reads[0]?.answer({ items: [1], next: null }));
  await waitFor(() => expect(result.current.items).toEqual([1]));
  act(() => result.current.refresh());
  act(() => result.current.refresh());
  act(() => result.current.refresh());
  expect(reads.map((read) => read.signal.aborted)).toEqual([false, false]);
  act(() => reads[1]?.answer({ items: [2], next: null }));
  await waitFor(() => expect(result.current.items).toEqual([2]));
  act(() => result.current.refresh());
  expect(reads).toHaveLength(3);
});
