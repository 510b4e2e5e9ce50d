/** The lines of one task: what was logged is read page by page, what is logged meanwhile is heard. */

import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";

import { asProblem, type ProblemError } from "@/api";
import { useLiveMessages } from "@/live";

import { getLogs } from "../requests";
import { LogBuffer, plain, type Line } from "./buffer";

export interface Logs {
  readonly lines: readonly Line[];
  /** Rises with every change of the lines. */
  readonly version: number;
  readonly isReading: boolean;
  readonly problem: ProblemError | null;
  /** The page holds no more. */
  readonly isFull: boolean;
  retry(): void;
}

/** `ended`: nothing more will be logged, as far as is known. */
export function useLogs(task: number, ended: boolean): Logs {
  const buffer = useMemo(() => new LogBuffer(), [task]);
  const version = useSyncExternalStore(buffer.subscribe, buffer.readVersion);
  const [isReading, setIsReading] = useState(true);
  const [problem, setProblem] = useState<ProblemError | null>(null);
  const [tries, setTries] = useState(0);
  /** The last place from which there was more to read. */
  const place = useRef<{ readonly buffer: LogBuffer; cursor: string | null }>({ buffer, cursor: null });

  useLiveMessages({ kind: "task", id: task }, (messages) => {
    const heard: Line[] = [];
    for (const message of messages) {
      if (message.type === "task_log_message") {
        heard.push({ claim: message.claim_no, seq: message.seq, at: message.at, stream: message.stream, text: plain(message.message) });
      } else if (message.type === "task_stream_value") {
        heard.push({ claim: message.claim_no, seq: message.seq, at: message.at, stream: "value", text: JSON.stringify(message.value) });
      }
    }
    buffer.add(heard);
  });

  // Read to the end when the page is opened, and once more when the task has ended: the last lines may have come by no
  // other way.
  useEffect(() => {
    const ending = new AbortController();
    if (place.current.buffer !== buffer) place.current = { buffer, cursor: null };
    const read = async (): Promise<void> => {
      setIsReading(true);
      setProblem(null);
      try {
        for (;;) {
          const page = await getLogs(task, place.current.cursor, ending.signal);
          buffer.add(
            page.items.map(({ claim_no, seq, at, stream, line }) => ({ claim: claim_no, seq, at, stream, text: plain(line) })),
          );
          if (page.next === null || buffer.isFull) break;
          place.current.cursor = page.next;
        }
      } catch (error) {
        if (!ending.signal.aborted) setProblem(asProblem(error));
      }
      if (!ending.signal.aborted) setIsReading(false);
    };
    void read();
    return () => ending.abort();
  }, [buffer, task, ended, tries]);

  return { lines: buffer.lines, version, isReading, problem, isFull: buffer.isFull, retry: () => setTries(tries + 1) };
}
