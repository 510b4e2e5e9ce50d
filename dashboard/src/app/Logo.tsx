/** A headrace: the channel that brings the water to the wheel. */
export function Logo({ size = 24 }: { readonly size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" fill="none" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" fill="var(--accent-fill)" />
      <g stroke="#fff" strokeWidth="2.6" strokeLinecap="round">
        <path d="M6 10c5 0 5 4 10 4s5-4 10-4" />
        <path d="M6 16.5c5 0 5 4 10 4s5-4 10-4" strokeOpacity=".72" />
        <path d="M6 23c5 0 5 3 10 3s5-3 10-3" strokeOpacity=".42" />
      </g>
    </svg>
  );
}
