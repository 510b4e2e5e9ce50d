/** A shape for each kind of state, on canvas and in the page: a colour never says it alone. */

import type { Tone } from "@/ui";

/** Lines in a square of 16. */
export const GLYPHS: Readonly<Record<Tone, string>> = {
  good: "M14.2 8A6.2 6.2 0 1 1 1.8 8A6.2 6.2 0 1 1 14.2 8M5 8.3L7.2 10.5L11.2 5.8",
  bad: "M2.5 2.5H13.5V13.5H2.5ZM5.5 5.5L10.5 10.5M10.5 5.5L5.5 10.5",
  ended: "M14.2 8A6.2 6.2 0 1 1 1.8 8A6.2 6.2 0 1 1 14.2 8M5 8H11",
  active: "M4 2.2L13.5 8L4 13.8Z",
  warn: "M8 1.8L15 14H1ZM8 6V9.6M8 11.6V12",
  waiting: "M14.2 8A6.2 6.2 0 1 1 1.8 8A6.2 6.2 0 1 1 14.2 8M8 4.6V8L10.3 9.6",
  blocked: "M8 1.2L14.8 8L8 14.8L1.2 8Z",
};

export function Glyph({ tone, size = 14 }: { readonly tone: Tone; readonly size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={GLYPHS[tone]} />
    </svg>
  );
}
