/** What can be watched, and what is said about it. The server's side of this is headrace/server/live. */

import type { wire } from "@/api";

/** Ids are texts or numbers: in an address they are the same. */
export type Topic =
  | { readonly kind: "overview" }
  | { readonly kind: "tasks" }
  | { readonly kind: "system" }
  | { readonly kind: "queues" }
  | { readonly kind: "job"; readonly id: number | string }
  | { readonly kind: "job-logs"; readonly id: number | string }
  | { readonly kind: "task"; readonly id: number | string };

export interface EndedCounts {
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly rejected: number;
}

export interface QueueFigures {
  readonly name: string;
  readonly paused: boolean;
  /** By lane and state; 10,001 means more than 10,000. */
  readonly depths: Readonly<Record<string, number>>;
}

/** The whole ledger at a glance, at most once a second. */
export interface OverviewMessage {
  readonly type: "overview";
  readonly at: string;
  /** What ended in the last two minutes, by the ledger's clock; the last one still grows. */
  readonly minutes: readonly (EndedCounts & { readonly at: string })[];
  readonly states: Readonly<Record<string, number>>;
  readonly queues: readonly (QueueFigures & { readonly retry_ratio: number })[];
  readonly workers: {
    readonly alive: number;
    readonly silent: number;
    readonly stopping: number;
    readonly hosts: number;
  };
}

/** That something was created or has ended: a list may ask again. */
export interface TasksMessage {
  readonly type: "tasks";
  readonly at: string;
  readonly newest: string | null;
  readonly ended: string | null;
  readonly ended_at: string | null;
}

export interface SystemMessage {
  readonly type: "system";
  readonly tasks: Readonly<Record<string, number>>;
  readonly workers: Readonly<Record<string, number>>;
}

export interface QueuesMessage {
  readonly type: "queues";
  readonly queues: readonly QueueFigures[];
}

export interface JobMessage {
  readonly type: "job_status_update";
  readonly status: wire.JobState;
  readonly seq: number;
  readonly data: {
    readonly job: string;
    readonly total: number;
    readonly completed: number;
    readonly failed: number;
    readonly cancelled: number;
    readonly at: string;
  };
}

export interface TaskMessage {
  readonly type: "task_update";
  readonly task: string;
  readonly status: wire.TaskState;
  readonly reason: string | null;
  readonly progress: unknown;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly claim_no: number;
  readonly run_no: number;
  readonly error_class: string | null;
  readonly error_message: string | null;
}

export interface LineMessage {
  readonly type: "task_log_message";
  readonly message: string;
  readonly stream: string;
  readonly task: string;
  readonly claim_no: number;
  readonly seq: number;
  readonly at: string;
}

export interface ValueMessage {
  readonly type: "task_stream_value";
  readonly value: unknown;
  readonly task: string;
  readonly claim_no: number;
  readonly seq: number;
  readonly at: string;
}

export type LiveMessage =
  | OverviewMessage
  | TasksMessage
  | SystemMessage
  | QueuesMessage
  | JobMessage
  | TaskMessage
  | LineMessage
  | ValueMessage;

interface Messages {
  readonly overview: OverviewMessage;
  readonly tasks: TasksMessage;
  readonly system: SystemMessage;
  readonly queues: QueuesMessage;
  readonly job: JobMessage;
  readonly "job-logs": LineMessage;
  readonly task: TaskMessage | LineMessage | ValueMessage;
}

/** What a topic can say. */
export type MessageOf<T extends Topic> = Messages[T["kind"]];

export function pathOf(topic: Topic): string {
  switch (topic.kind) {
    case "overview":
      return "/ws/overview/";
    case "tasks":
      return "/ws/tasks/";
    case "system":
      return "/ws/system/";
    case "queues":
      return "/ws/queues/";
    case "job":
      return `/ws/job/${topic.id}/status/`;
    case "job-logs":
      return `/ws/job/${topic.id}/logs/`;
    case "task":
      return `/ws/task/${topic.id}/`;
  }
}

/** Where a message stands in its sequence, as `?after=` takes it; null for a state, of which only the last one counts. */
export function placeOf(topic: Topic, message: LiveMessage): string | null {
  switch (message.type) {
    case "job_status_update":
      return String(message.seq);
    case "task_log_message":
    case "task_stream_value":
      return topic.kind === "task" ? `${message.claim_no}.${message.seq}` : String(message.seq);
    default:
      return null;
  }
}
