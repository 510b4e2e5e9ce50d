/** What can be watched, and what is said about it. The server's side of this is headrace/server/live. */

import type { wire } from "@/api";

/** Ids are texts or numbers: in an address they are the same. */
export type Topic =
  | { readonly kind: "system" }
  | { readonly kind: "queues" }
  | { readonly kind: "job"; readonly id: number | string }
  | { readonly kind: "job-logs"; readonly id: number | string }
  | { readonly kind: "task"; readonly id: number | string };

export interface SystemMessage {
  readonly type: "system";
  readonly tasks: Readonly<Record<string, number>>;
  readonly workers: Readonly<Record<string, number>>;
}

export interface QueuesMessage {
  readonly type: "queues";
  readonly queues: readonly {
    readonly name: string;
    readonly paused: boolean;
    readonly depths: Readonly<Record<string, number>>;
  }[];
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

export type LiveMessage = SystemMessage | QueuesMessage | JobMessage | TaskMessage | LineMessage | ValueMessage;

/** What a topic can say. */
export type MessageOf<T extends Topic> = T extends { kind: "system" }
  ? SystemMessage
  : T extends { kind: "queues" }
    ? QueuesMessage
    : T extends { kind: "job" }
      ? JobMessage
      : T extends { kind: "job-logs" }
        ? LineMessage
        : TaskMessage | LineMessage | ValueMessage;

export function pathOf(topic: Topic): string {
  switch (topic.kind) {
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
