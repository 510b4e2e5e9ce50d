import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Link } from "react-router";

import { api, asProblem, call, type ProblemError, type wire } from "@/api";
import { useLiveMessages, type LineMessage } from "@/live";
import { Button, Checkbox, Empty, Input, Problem, useToasts, utcTime } from "@/ui";
import { classes } from "@/ui/classes";
import { DownloadIcon } from "@/ui/icons";

import { isOver } from "../following";
import { asText, found, merged, MOST_LINES, rowsSeen, type Line } from "./lines";
import styles from "./JobLogs.module.css";

const ROW = 20;
const PAGE = 500;

/** The lines of all tasks of a job, as they come. */
export default function JobLogs({ job }: { readonly job: wire.JobShown }) {
  const toasts = useToasts();
  const [lines, setLines] = useState<readonly Line[]>([]);
  const [sought, setSought] = useState("");
  const [follows, setFollows] = useState(true);
  const [problem, setProblem] = useState<ProblemError | null>(null);
  const [isReading, setIsReading] = useState(false);
  const [isSaving, setIsSaving] = useState(false);

  const status = useLiveMessages(
    { kind: "job-logs", id: job.id },
    useCallback((messages: readonly LineMessage[]) => {
      setLines((known) => merged(known, messages.map(liveLine)));
    }, []),
  );
  const shown = useMemo(() => found(lines, sought), [lines, sought]);
  const first = lines[0]?.seq ?? 0;

  async function readEarlier(): Promise<void> {
    setIsReading(true);
    setFollows(false);
    try {
      const page = await readLines(job.id, first - PAGE - 1, Math.min(PAGE, first));
      setLines((known) => merged(known, page.lines, MOST_LINES * 2));
      setProblem(null);
    } catch (error) {
      setProblem(asProblem(error));
    }
    setIsReading(false);
  }

  async function save(): Promise<void> {
    setIsSaving(true);
    try {
      const parts: string[] = [];
      for (let after: number | null = -1; after !== null; ) {
        const page: { lines: readonly Line[]; next: number | null } = await readLines(job.id, after, PAGE);
        parts.push(asText(page.lines));
        after = page.next;
      }
      download(`job-${job.id}.log`, parts);
    } catch (error) {
      toasts.fail("The lines were not saved", error);
    }
    setIsSaving(false);
  }

  return (
    <div className={styles.logs}>
      <div className={styles.tools}>
        <Input
          label="Find in the lines"
          quiet
          type="search"
          placeholder="Find words, or #17 for a task"
          className={styles.sought}
          value={sought}
          onChange={(event) => setSought(event.target.value)}
        />
        <Checkbox label="Follow" checked={follows} onChange={(event) => setFollows(event.target.checked)} />
        <span className="muted" aria-live="polite">
          {sought.trim() === ""
            ? `${lines.length.toLocaleString()} lines`
            : `${shown.length.toLocaleString()} of ${lines.length.toLocaleString()} lines`}
        </span>
        <Button icon={<DownloadIcon />} busy={isSaving} disabled={lines.length === 0} onClick={() => void save()}>
          {isSaving ? "Reading all…" : "Download"}
        </Button>
      </div>
      {problem !== null && <Problem error={problem} title="Earlier lines could not be read" />}
      {status.state === "refused" && (
        <Problem error={new Error(status.reason || `closed with ${status.code}`)} title="Lines are not shown live" />
      )}
      {lines.length === 0 ? (
        <Empty title="No lines yet">
          {isOver(job)
            ? "Its tasks wrote none, or they were removed with time. Write some with current.log(…), or with logging from INFO on."
            : "What its tasks write with current.log(…), or with logging from INFO on, appears here at once."}
        </Empty>
      ) : (
        <Lines
          lines={shown}
          follows={follows && sought.trim() === ""}
          stopFollowing={() => setFollows(false)}
          earlier={
            first > 0 && sought.trim() === "" ? (
              <Button kind="quiet" busy={isReading} onClick={() => void readEarlier()}>
                {isReading ? "Reading…" : `Show earlier lines (${first.toLocaleString()} more)`}
              </Button>
            ) : null
          }
        />
      )}
    </div>
  );
}

interface LinesProps {
  readonly lines: readonly Line[];
  readonly follows: boolean;
  stopFollowing(): void;
  readonly earlier: React.ReactNode;
}

/** Only those that are seen are in the page. */
function Lines({ lines, follows, stopFollowing, earlier }: LinesProps) {
  const box = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ top: 0, height: 480 });
  const { from, to } = rowsSeen(seen.top, seen.height, ROW, lines.length);
  const firstSeq = lines[0]?.seq ?? 0;
  const before = useRef({ firstSeq, count: lines.length });

  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const added = before.current.firstSeq - firstSeq;
    if (follows) element.scrollTop = element.scrollHeight;
    // Lines that came above push down what one reads: so does the view.
    else if (added > 0) element.scrollTop += (lines.length - before.current.count) * ROW;
    before.current = { firstSeq, count: lines.length };
  }, [follows, lines, firstSeq]);

  return (
    <>
      {earlier}
      <div
        ref={box}
        className={styles.box}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label="Lines of the job"
        onScroll={(event) => {
          const { scrollTop, clientHeight, scrollHeight } = event.currentTarget;
          setSeen({ top: scrollTop, height: clientHeight });
          if (follows && scrollTop + clientHeight < scrollHeight - 4 * ROW) stopFollowing();
        }}
      >
        <div className={styles.all} style={{ height: lines.length * ROW }}>
          {lines.slice(from, to).map((line, at) => (
            <div key={line.seq} className={styles.line} style={{ top: (from + at) * ROW }}>
              <time className={styles.at} dateTime={line.at} title={`${new Date(line.at).toLocaleString()} here\n${utcTime(new Date(line.at))}`}>
                {clock(line.at)}
              </time>
              <Link to={`/tasks/${line.task}`} className={styles.task} tabIndex={-1}>
                #{line.task}
              </Link>
              <span className={classes(styles.stream, isBad(line.stream) && styles.bad, line.stream === "warning" && styles.warn)}>{line.stream}</span>
              <span>{line.text}</span>
            </div>
          ))}
        </div>
      </div>
    </>
  );
}

function isBad(stream: string): boolean {
  return stream === "stderr" || stream === "error" || stream === "critical";
}

function clock(at: string): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? at : date.toLocaleTimeString(undefined, { hour12: false });
}

function liveLine(message: LineMessage): Line {
  const { seq, task, at, stream } = message;
  return { seq, task, claim: message.claim_no, at, stream, text: message.message };
}

async function readLines(id: number, after: number, limit: number): Promise<{ lines: readonly Line[]; next: number | null }> {
  const query = { after: Math.max(-1, after), limit };
  const page = await call(api.GET("/api/v1/jobs/{id}/logs", { params: { path: { id }, query } }));
  const lines = page.items.map((line) => ({
    seq: line.seq,
    task: String(line.task),
    claim: line.claim_no,
    at: line.at,
    stream: line.stream,
    text: line.line,
  }));
  return { lines, next: page.next == null ? null : Number(page.next) };
}

function download(name: string, parts: readonly string[]): void {
  const address = URL.createObjectURL(new Blob([...parts], { type: "text/plain;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
