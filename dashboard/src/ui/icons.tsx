/** Icons of one hand: 16 px, one line of 1.5. They say nothing by themselves; what they stand beside does. */

import type { ReactNode } from "react";

function icon(drawing: ReactNode) {
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
        {drawing}
      </svg>
    );
  };
}

export const OverviewIcon = icon(<path d="M1.5 11.5c2.2 0 2.2-5 4.3-5s2.2 3.5 4.3 3.5 2.2-5.5 4.4-5.5" />);
export const TasksIcon = icon(<path d="M2 4l1.2 1.2L5.5 3M2 9l1.2 1.2L5.5 8M8 4.2h6M8 9.2h6M3 13.5h11" />);
export const JobsIcon = icon(
  <>
    <circle cx="3.5" cy="8" r="1.8" />
    <circle cx="12.5" cy="3.5" r="1.8" />
    <circle cx="12.5" cy="12.5" r="1.8" />
    <path d="M5.2 7.2l5.6-2.8M5.2 8.8l5.6 2.8" />
  </>,
);
export const QueuesIcon = icon(<path d="M2 3.5h12M2 8h9M2 12.5h6M13 10.5v4M11 12.5h4" />);
export const DeadLettersIcon = icon(<path d="M2 4.5h12v8H2zM2 5l6 4.5L14 5M5.5 1.5h5" />);
export const SchedulesIcon = icon(
  <>
    <circle cx="8" cy="8" r="6" />
    <path d="M8 4.5V8l2.3 1.8" />
  </>,
);
export const WorkersIcon = icon(<path d="M2.5 2.5h11v4h-11zM2.5 9.5h11v4h-11zM5 4.5h.01M5 11.5h.01M8 4.5h3M8 11.5h3" />);
export const BreakersIcon = icon(<path d="M9 1.5L3.5 9H8l-1 5.5L12.5 7H8z" />);
export const ApprovalsIcon = icon(<path d="M8 1.5l5.5 2v4c0 3.5-2.3 6-5.5 7-3.2-1-5.5-3.5-5.5-7v-4zM5.5 8l1.8 1.8 3.2-3.3" />);
export const AccountsIcon = icon(
  <>
    <circle cx="8" cy="5" r="2.8" />
    <path d="M2.5 14c.5-3 2.7-4.5 5.5-4.5s5 1.5 5.5 4.5" />
  </>,
);
export const AuditIcon = icon(<path d="M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3M5.5 8h5M5.5 11h5" />);
export const NodesIcon = icon(<path d="M2 2h5v5H2zM9 2h5v5H9zM2 9h5v5H2zM9 9h5v5H9z" />);
export const SearchIcon = icon(
  <>
    <circle cx="7" cy="7" r="4.5" />
    <path d="M10.5 10.5L14 14" />
  </>,
);
export const MenuIcon = icon(<path d="M2 4h12M2 8h12M2 12h12" />);
export const CloseIcon = icon(<path d="M3.5 3.5l9 9M12.5 3.5l-9 9" />);
export const SunIcon = icon(
  <>
    <circle cx="8" cy="8" r="3" />
    <path d="M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1" />
  </>,
);
export const MoonIcon = icon(<path d="M13.5 9.5A6 6 0 116.5 2.5a4.8 4.8 0 007 7z" />);
export const ScreenIcon = icon(<path d="M1.5 2.5h13v9h-13zM5.5 14.5h5M8 11.5v3" />);
export const PlayIcon = icon(<path d="M4.5 2.5l8 5.5-8 5.5z" />);
export const PauseIcon = icon(<path d="M5 3v10M11 3v10" />);
export const RetryIcon = icon(<path d="M13.5 8a5.5 5.5 0 11-1.7-4M13.5 1.5v3h-3" />);
export const StopIcon = icon(<path d="M3.5 3.5h9v9h-9z" />);
export const TrashIcon = icon(<path d="M2.5 4h11M6 4V2h4v2M4 4l.7 10h6.6L12 4M6.7 7v4.5M9.3 7v4.5" />);
export const PlusIcon = icon(<path d="M8 2.5v11M2.5 8h11" />);
export const CheckIcon = icon(<path d="M2.5 8.5l3.5 3.5 7.5-8" />);
export const ChevronIcon = icon(<path d="M6 3.5L10.5 8 6 12.5" />);
export const DownloadIcon = icon(<path d="M8 2v8M4.5 7L8 10.5 11.5 7M2.5 13.5h11" />);
export const CopyIcon = icon(<path d="M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3" />);
export const LinkIcon = icon(<path d="M6.5 9.5l3-3M7 4.5l1.5-1.5a3 3 0 014.5 4.5L11.5 9M9 11.5L7.5 13A3 3 0 013 8.5L4.5 7" />);
export const WarningIcon = icon(<path d="M8 2L1.5 13.5h13zM8 6.5v3M8 11.5h.01" />);
export const EditIcon = icon(<path d="M10.5 2.5l3 3-8 8h-3v-3z" />);
export const ExternalIcon = icon(<path d="M6.5 3H3v10h10V9.5M9.5 2.5h4v4M13.5 2.5L7.5 8.5" />);
