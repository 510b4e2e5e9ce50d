import { useMemo } from "react";

import type { wire } from "@/api";

import type { Outline } from "../outline";
import { sumOf, tonesOf, TONE_WORDS } from "../states";
import { ToneMark } from "./Hint";
import { KINDS } from "./scene";
import styles from "./GraphView.module.css";

const KIND_WORDS: Readonly<Record<wire.EdgeKind, string>> = {
  on_success: "after success",
  on_done: "after the end, whatever it was",
  on_failure: "after failure",
};

/** Shapes, colours and lines that are in this graph, and what they say. */
export function Legend({ outline }: { readonly outline: Outline }) {
  const tones = useMemo(() => tonesOf(sumOf(outline.groups.map((group) => group.states))), [outline]);
  const kinds = useMemo(() => {
    const used = new Set(outline.edges.map((edge) => edge.kind));
    return KINDS.filter((kind) => used.has(kind));
  }, [outline]);
  return (
    <ul className={styles.legend} aria-label="What shapes and lines mean">
      {tones.map(({ tone, count }) => (
        <li key={tone}>
          <ToneMark tone={tone} /> {TONE_WORDS[tone]} <strong>{count.toLocaleString()}</strong>
        </li>
      ))}
      {kinds.map((kind) => (
        <li key={kind}>
          <svg width="28" height="8" aria-hidden="true" className={styles[kind]}>
            <line x1="0" x2="28" y1="4" y2="4" />
          </svg>{" "}
          {KIND_WORDS[kind]}
        </li>
      ))}
    </ul>
  );
}
