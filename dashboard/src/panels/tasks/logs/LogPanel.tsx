import { useMemo, useRef, useState, type KeyboardEvent } from "react";

import type { wire } from "@/api";
import { Button, Checkbox, IconButton, Input, Problem, Section, Select, Skeleton } from "@/ui";
import { ChevronIcon, DownloadIcon } from "@/ui/icons";

import { downloadAddress } from "../requests";
import { MOST_LINES } from "./buffer";
import { findLines, nextMatch } from "./finding";
import { LogView } from "./LogView";
import styles from "./Logs.module.css";
import { useLogs } from "./useLogs";
import { viewOf, type View } from "./view";

interface LogPanelProps {
  readonly task: Pick<wire.TaskDetail, "id" | "attempts" | "state">;
  readonly ended: boolean;
}

/** What the task says: live, to be followed, searched and taken away. */
export function LogPanel({ task, ended }: LogPanelProps) {
  const logs = useLogs(task.id, ended);
  const [claim, setClaim] = useState("");
  const [stream, setStream] = useState("");
  const [text, setText] = useState("");
  const [onlyFound, setOnlyFound] = useState(false);
  const [follow, setFollow] = useState(!ended);
  const [target, setTarget] = useState<{ readonly at: number } | null>(null);

  const before = useRef<View>(undefined);
  const view = useMemo(() => {
    const wanted = { claim: claim === "" ? null : Number(claim), stream: stream === "" ? null : stream, text: onlyFound ? text : "" };
    before.current = viewOf(logs.lines, wanted, before.current);
    return before.current;
  }, [logs.lines, logs.version, claim, stream, onlyFound, onlyFound ? text : ""]);
  const found = useMemo(() => (text === "" || onlyFound ? [] : findLines(view.lines, text)), [view, text, onlyFound]);
  const streams = useStreams(logs.lines, logs.version);
  const claims = useMemo(() => [...new Set(task.attempts.map((attempt) => attempt.claim_no))], [task.attempts]);

  function go(step: 1 | -1): void {
    const next = nextMatch(found, target?.at ?? null, step);
    if (next === null) return;
    setFollow(false);
    setTarget({ at: next });
  }

  function pressed(event: KeyboardEvent): void {
    if (event.key !== "Enter") return;
    event.preventDefault();
    go(event.shiftKey ? -1 : 1);
  }

  const download = downloadAddress(task.id, claim === "" ? null : Number(claim));
  const place = target === null ? -1 : found.indexOf(target.at);
  return (
    <Section
      title="Log"
      actions={
        logs.lines.length > 0 && (
          <span className="cluster">
            <span className="muted" role="status">
              {logs.isReading ? "reading " : ""}
              {logs.lines.length.toLocaleString()} {logs.lines.length === 1 ? "line" : "lines"}
            </span>
            <a className={styles.download} href={download} download>
              <DownloadIcon /> Download
            </a>
          </span>
        )
      }
    >
      {logs.problem !== null && <Problem title="The log could not be read to its end" error={logs.problem} retry={logs.retry} />}
      {logs.isFull && (
        <p className="muted">
          These are the first {MOST_LINES.toLocaleString()} lines; the download has all of them.
        </p>
      )}
      {logs.lines.length === 0 ? (
        logs.isReading ? (
          <Skeleton lines={3} />
        ) : (
          <p className="muted">
            It has logged nothing{ended ? "" : " yet"}. What a task logs with <code>logging</code> while it runs, and what it prints, is
            shown here as it comes.
          </p>
        )
      ) : (
        <>
          <div className={styles.tools}>
            <Input
              label="Search in the log"
              quiet
              className={styles.search}
              type="search"
              placeholder="Search"
              value={text}
              onKeyDown={pressed}
              onChange={(event) => {
                setText(event.target.value);
                setTarget(null);
              }}
            />
            {text !== "" && !onlyFound && (
              <span className={styles.matches}>
                <span role="status">{found.length === 0 ? "not found" : `${place === -1 ? "" : `${place + 1} of `}${found.length.toLocaleString()}`}</span>
                <span className={styles.up}>
                  <IconButton label="Match before" icon={<ChevronIcon />} disabled={found.length === 0} onClick={() => go(-1)} />
                </span>
                <span className={styles.down}>
                  <IconButton label="Next match" icon={<ChevronIcon />} disabled={found.length === 0} onClick={() => go(1)} />
                </span>
              </span>
            )}
            {text !== "" && (
              <Checkbox label="Only lines with it" checked={onlyFound} onChange={(event) => setOnlyFound(event.target.checked)} />
            )}
            {claims.length > 1 && (
              <Select
                label="Execution"
                quiet
                className={styles.choice}
                value={claim}
                change={setClaim}
                options={[{ value: "", label: "All executions" }, ...claims.map((each) => ({ value: String(each), label: `Claim ${each}` }))]}
              />
            )}
            {streams.length > 1 && (
              <Select
                label="Level"
                quiet
                className={styles.choice}
                value={stream}
                change={setStream}
                options={[{ value: "", label: "All levels" }, ...streams.map((each) => ({ value: each, label: each }))]}
              />
            )}
            <Button kind={follow ? "plain" : "quiet"} aria-pressed={follow} onClick={() => setFollow(!follow)}>
              {follow ? "Following" : "Follow"}
            </Button>
          </div>
          <LogView
            lines={view.lines}
            grew={view.grew}
            follow={follow}
            setFollow={setFollow}
            marked={text}
            target={target}
            withClaim={claims.length > 1 && claim === ""}
          />
        </>
      )}
    </Section>
  );
}

/** Streams that occur; of new lines alone are they looked for. */
function useStreams(lines: readonly { readonly stream: string }[], version: number): readonly string[] {
  const known = useRef({ lines, through: 0, found: [] as readonly string[] });
  return useMemo(() => {
    if (known.current.lines !== lines || known.current.through > lines.length) known.current = { lines, through: 0, found: [] };
    const { current } = known;
    const found = new Set(current.found);
    // Pages may be put in before what was heard: the whole is looked at where it is small, else what is at the end.
    for (let at = lines.length < 5000 ? 0 : current.through; at < lines.length; at += 1) found.add(lines[at]?.stream ?? "");
    if (found.size !== current.found.length) current.found = [...found].sort();
    current.through = lines.length;
    return current.found;
  }, [lines, version]);
}
