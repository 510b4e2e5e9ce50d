import { useRef } from "react";

import type { wire } from "@/api";

/** The same submission twice, because an answer was lost, is one task; another one has another key. */
export function useSubmit<Body>(send: (body: Body, key: string) => Promise<wire.Submitted>): (body: Body) => Promise<wire.Submitted> {
  const sent = useRef({ text: "", key: "" });
  return async (body) => {
    const text = JSON.stringify(body);
    if (sent.current.text !== text) sent.current = { text, key: freshKey() };
    const made = await send(body, sent.current.key);
    // Who submits the same once more means another one.
    sent.current = { text: "", key: "" };
    return made;
  };
}

function freshKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
