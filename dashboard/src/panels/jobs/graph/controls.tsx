/** Icons that only a graph and a Gantt view need; of the same hand as the others. */

function icon(drawing: string) {
  return function Icon() {
    return (
      <svg
        width="16"
        height="16"
        viewBox="0 0 16 16"
        fill="none"
        stroke="currentColor"
        strokeWidth="1.5"
        strokeLinecap="round"
        strokeLinejoin="round"
        aria-hidden="true"
        focusable="false"
      >
        <path d={drawing} />
      </svg>
    );
  };
}

export const MinusIcon = icon("M2.5 8h11");
export const FitIcon = icon("M2 5.5V2h3.5M10.5 2H14v3.5M14 10.5V14h-3.5M5.5 14H2v-3.5M5 5h6v6H5z");
