import { useMemo, useState } from "react";

import { Button, Copy } from "@/ui";
import { classes } from "@/ui/classes";
import { ChevronIcon } from "@/ui/icons";

import { fold, shortPath, type Fold } from "./folding";
import { parseTraceback, type Frame, type Link } from "./parse";
import styles from "./Traceback.module.css";

const RELATIONS = {
  cause: "The error above was the cause of this one:",
  context: "While the error above was handled, this one happened:",
} as const;

/** In the order of Python: what was raised stands at the end of each chain. */
export function Traceback({ text }: { readonly text: string }) {
  const parsed = useMemo(() => parseTraceback(text), [text]);
  const [isRaw, setIsRaw] = useState(false);
  const [allOpen, setAllOpen] = useState(false);
  return (
    <div className={styles.traceback}>
      <div className={styles.tools}>
        {!isRaw && (
          <Button kind="quiet" aria-pressed={allOpen} onClick={() => setAllOpen(!allOpen)}>
            {allOpen ? "Fold libraries" : "Unfold all"}
          </Button>
        )}
        <Button kind="quiet" aria-pressed={isRaw} onClick={() => setIsRaw(!isRaw)}>
          {isRaw ? "By frame" : "As Python printed it"}
        </Button>
        <span className={styles.copy}>
          <Copy text={text} label="the traceback" />
        </span>
      </div>
      {isRaw ? (
        <pre className={styles.raw} tabIndex={0} role="region" aria-label="Traceback">
          {text}
        </pre>
      ) : (
        <Chain links={parsed.links} allOpen={allOpen} />
      )}
    </div>
  );
}

function Chain({ links, allOpen }: { readonly links: readonly Link[]; readonly allOpen: boolean }) {
  return (
    <div className={styles.chain}>
      {links.map((link, at) => (
        <div key={at} className={styles.link}>
          {link.relation !== null && <p className={styles.relation}>{RELATIONS[link.relation]}</p>}
          <ol className={styles.frames} aria-label={`Frames of ${link.errorClass}`}>
            {fold(link.entries).map((each, place) => (
              <FoldShown key={place} fold={each} allOpen={allOpen} />
            ))}
          </ol>
          <p className={styles.error}>
            <strong>{link.errorClass}</strong>
            {link.message !== "" && <span>: {link.message}</span>}
          </p>
          {link.members.length > 0 && (
            <ol className={styles.members}>
              {link.members.map((member, place) => (
                <li key={place}>
                  <p className={styles.relation}>
                    {place + 1} of {link.members.length}
                  </p>
                  <Chain links={member} allOpen={allOpen} />
                </li>
              ))}
            </ol>
          )}
        </div>
      ))}
    </div>
  );
}

function FoldShown({ fold: found, allOpen }: { readonly fold: Fold; readonly allOpen: boolean }) {
  switch (found.kind) {
    case "frame":
      return <FrameShown frame={found.frame} raised={found.raised} />;
    case "gap":
      return <li className={styles.gap}>{found.gap.gap}</li>;
    case "library":
      return <LibraryFrames fold={found} allOpen={allOpen} />;
  }
}

function LibraryFrames({ fold: found, allOpen }: { readonly fold: Extract<Fold, { kind: "library" }>; readonly allOpen: boolean }) {
  const [isOpen, setIsOpen] = useState(false);
  const shown = isOpen || allOpen;
  const count = found.frames.length;
  return (
    <li className={styles.library}>
      <button type="button" className={styles.fold} aria-expanded={shown} disabled={allOpen} onClick={() => setIsOpen(!isOpen)}>
        <span className={classes(styles.chevron, shown && styles.open)}>
          <ChevronIcon />
        </span>
        {count} {count === 1 ? "frame" : "frames"} in {found.libraries.slice(0, 4).join(", ")}
        {found.libraries.length > 4 && " …"}
        {found.raised && <span className={styles.raised}>raised here</span>}
      </button>
      {shown && (
        <ol>
          {found.frames.map((frame, at) => (
            <FrameShown key={at} frame={frame} raised={found.raised && at === count - 1} />
          ))}
        </ol>
      )}
    </li>
  );
}

function FrameShown({ frame, raised }: { readonly frame: Frame; readonly raised: boolean }) {
  return (
    <li className={classes(styles.frame, frame.library === null && styles.own)}>
      <p className={styles.place}>
        <span title={frame.file}>
          {shortPath(frame.file)}:{frame.line}
        </span>
        {frame.where !== null && <span> in {frame.where}</span>}
        {frame.repeated > 0 && <span className={styles.repeated}> and {frame.repeated} times more</span>}
        {raised && <span className={styles.raised}>raised here</span>}
      </p>
      {frame.code.length > 0 && (
        <pre className={styles.code} tabIndex={0} aria-label={`Source at line ${frame.line}`} role="region">
          {frame.code.join("\n")}
        </pre>
      )}
    </li>
  );
}
