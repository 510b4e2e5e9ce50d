import { durationText, StateBadge, Time, type Tone } from "@/ui";

import { Glyph } from "../glyphs";
import type { Group, Member } from "../outline";
import { statesText, tonesOf, TONE_WORDS } from "../states";
import type { Box } from "./scene";
import type { Rectangle } from "./viewport";
import { memberSeconds } from "./words";
import styles from "./GraphView.module.css";

interface HintProps {
  readonly box: Box;
  readonly card: number | null;
  /** What it is about, on the screen. */
  readonly at: Rectangle;
  readonly within: HTMLElement | null;
}

const WIDTH = 300;
const HEIGHT = 150;

/** What is known of what is pointed at. For eyes alone: keys say the same in words. */
export function Hint({ box, card, at, within }: HintProps) {
  const member = box.kind === "task" ? box.member : box.kind === "block" && card !== null ? (box.members[card] ?? null) : null;
  const room = { width: within?.clientWidth ?? 0, height: within?.clientHeight ?? 0 };
  const width = Math.min(WIDTH, room.width - 16);
  const left = Math.max(8, Math.min(at.x, room.width - width - 8));
  // Below it where there is room, else above; over it where it fills everything.
  const isBelow = at.y + at.height + HEIGHT < room.height;
  const place = isBelow ? { top: Math.max(8, at.y + at.height + 10) } : { bottom: Math.max(8, room.height - at.y + 10) };
  return (
    <div className={styles.hint} style={{ left, width, ...place }} aria-hidden="true">
      {member === null ? <AboutGroup group={box.group} name={box.name} /> : <AboutTask member={member} />}
    </div>
  );
}

function AboutTask({ member }: { readonly member: Member }) {
  const seconds = memberSeconds(member, Date.now());
  return (
    <>
      <p className={styles.hintTitle}>
        <strong>{member.name}</strong> <span className="muted">#{member.id}</span>
      </p>
      {member.name !== member.task && <p className="muted mono">{member.task}</p>}
      <p className="cluster">
        <StateBadge state={member.state} reason={member.reason} />
        {member.attempts > 0 && <span>{member.attempts === 1 ? "1 attempt" : `${member.attempts} attempts`}</span>}
        {seconds !== null && <span>{durationText(seconds)}</span>}
      </p>
      {member.started_at !== null && (
        <p className="muted">
          Began <Time at={member.started_at} />
        </p>
      )}
      {member.waiting_on !== null && <p>Waits for {member.waiting_on}</p>}
      {!member.critical && <p className="muted">Its failure does not fail the job.</p>}
      {member.error !== null && <p className={styles.bad}>{member.error}</p>}
    </>
  );
}

function AboutGroup({ group, name }: { readonly group: Group; readonly name: string }) {
  return (
    <>
      <p className={styles.hintTitle}>
        <strong>{name}</strong> {group.count > 1 && <span className="muted">× {group.count.toLocaleString()}</span>}
      </p>
      {group.task !== null && name !== group.task && <p className="muted mono">{group.task}</p>}
      <p className="cluster">
        {tonesOf(group.states).map(({ tone }) => (
          <ToneMark key={tone} tone={tone} />
        ))}
        <span>{statesText(group.states)}</span>
      </p>
      {group.took.mean !== null && (
        <p className="muted">
          {group.took.n === 1
            ? `Took ${durationText(group.took.mean)}`
            : `Took ${durationText(group.took.mean)} on average, ${durationText(group.took.max ?? 0)} at most`}
        </p>
      )}
      {group.error !== null && <p className={styles.bad}>{group.error}</p>}
    </>
  );
}

export function ToneMark({ tone }: { readonly tone: Tone }) {
  return (
    <span className={styles[tone]} title={TONE_WORDS[tone]}>
      <Glyph tone={tone} />
    </span>
  );
}
