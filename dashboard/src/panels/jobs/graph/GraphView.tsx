import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useNavigate } from "react-router";

import { Button, IconButton, shortNumber } from "@/ui";
import { PlusIcon } from "@/ui/icons";

import type { Member, Outline } from "../outline";
import type { PagedList, Pages } from "../paging";
import { FitIcon, MinusIcon } from "./controls";
import { GraphCanvas } from "./GraphCanvas";
import { Hint } from "./Hint";
import { Layouter } from "./laying";
import type { Layout } from "./layout";
import { Legend } from "./Legend";
import { sceneOf, type Place, type Scene } from "./scene";
import type { Target } from "./targets";
import type { Rectangle, Viewport } from "./viewport";
import styles from "./GraphView.module.css";

interface GraphViewProps {
  readonly jobId: number;
  readonly jobName: string;
  readonly outline: Outline;
  /** Ids of groups. */
  readonly unfolded: ReadonlySet<string>;
  setUnfolded(unfolded: ReadonlySet<string>): void;
  readonly pages: Pages<Member>;
  /** What runs has a duration that grows. */
  readonly live: boolean;
  /** Shows the same as a table. */
  showTable(): void;
}

/** Where each job was looked at last: who comes back from a task is where they were. */
const views = new Map<number, Viewport>();

interface Pointed {
  readonly place: Place;
  readonly at: Rectangle;
}

export default function GraphView(props: GraphViewProps) {
  const { jobId, jobName, outline, unfolded, setUnfolded, pages, live, showTable } = props;
  const navigate = useNavigate();
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const graph = useRef<GraphCanvas | null>(null);
  const anchor = useRef<string | null>(null);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const [said, setSaid] = useState("");
  const version = pages.getVersion();
  const scene = useMemo(
    () => sceneOf(outline, unfolded, (group) => pages.of(group).items),
    // `version` stands for what the pages hold.
    [outline, unfolded, pages, version],
  );

  const act = useCallback(
    (target: Target, aside: boolean) => {
      switch (target.act) {
        case "open":
          if (aside) window.open(`/tasks/${target.id}`, "_blank", "noopener");
          else void navigate(`/tasks/${target.id}`);
          return;
        case "unfold":
        case "fold": {
          const next = new Set(unfolded);
          if (target.act === "unfold") next.add(target.group);
          else next.delete(target.group);
          anchor.current = target.group;
          setPointed(null);
          setUnfolded(next);
          return;
        }
        case "more":
          pages.more(target.group);
          return;
        case "none":
          return;
      }
    },
    [navigate, pages, setUnfolded, unfolded],
  );

  const latest = useRef({ scene, act });
  useEffect(() => {
    latest.current = { scene, act };
  });

  useEffect(() => {
    const element = canvas.current;
    const around = frame.current;
    if (element === null || around === null) return undefined;
    const made = new GraphCanvas(
      element,
      {
        act: (target, aside) => latest.current.act(target, aside),
        pointed: (place, at, byKeys) => {
          setPointed(place === null || at === null ? null : { place, at });
          if (byKeys && place !== null) setSaid(spoken(latest.current.scene, place));
        },
        viewed: (view) => views.set(jobId, view),
      },
      views.get(jobId) ?? null,
    );
    graph.current = made;
    const fill = (): void => made.resize({ width: around.clientWidth, height: around.clientHeight }, window.devicePixelRatio);
    fill();
    const observer = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(fill);
    observer?.observe(around);
    return () => {
      observer?.disconnect();
      made.destroy();
      graph.current = null;
    };
  }, [jobId]);

  useLayout(scene, graph, anchor);

  useEffect(() => graph.current?.setReading(pages.reading()), [pages, version]);

  useEffect(() => {
    if (outline.members !== null) return;
    for (const group of outline.groups) if (group.count > 1 && unfolded.has(group.id)) pages.open(group.id);
  }, [outline, unfolded, pages]);

  useEffect(() => {
    if (!live) return undefined;
    const timer = window.setInterval(() => graph.current?.invalidate(), 1000);
    return () => window.clearInterval(timer);
  }, [live]);

  const open = scene.boxes.flatMap((box) => (box.kind === "block" ? [box] : []));
  const box = pointed === null ? undefined : scene.boxes[pointed.place.box];
  return (
    <div className={styles.graph}>
      <div className={styles.tools}>
        <div className={styles.buttons} role="toolbar" aria-label="Look of the graph">
          <IconButton label="Larger" icon={<PlusIcon />} onClick={() => graph.current?.larger()} />
          <IconButton label="Smaller" icon={<MinusIcon />} onClick={() => graph.current?.smaller()} />
          <IconButton label="Fit to the screen" icon={<FitIcon />} onClick={() => graph.current?.fit()} />
        </div>
        <Button kind="quiet" onClick={showTable}>
          As a table
        </Button>
        {outline.merged && (
          <span className="muted">This job has more than 2,000 groups: neighbouring levels are put together.</span>
        )}
        {!outline.complete && <span className="muted">Only the first 250,000 tasks of this job are shown.</span>}
      </div>
      {open.length > 0 && (
        <ul className={styles.unfolded} aria-label="Groups that are unfolded">
          {open.slice(0, 6).map((block) => (
            <li key={block.key}>
              <UnfoldedGroup
                name={block.name}
                count={block.group.count}
                list={outline.members === null ? pages.of(block.key) : null}
                more={() => pages.more(block.key)}
                all={() => pages.all(block.key)}
                halt={() => pages.halt(block.key)}
                fold={() => act({ act: "fold", group: block.key, place: { box: 0, card: null } }, false)}
              />
            </li>
          ))}
          {open.length > 1 && (
            <li>
              <Button kind="quiet" onClick={() => setUnfolded(new Set())}>
                Fold all {open.length}
              </Button>
            </li>
          )}
        </ul>
      )}
      <div ref={frame} className={styles.frame} role="group" aria-label={`Graph of ${jobName}`}>
        <canvas
          ref={canvas}
          className={styles.canvas}
          tabIndex={0}
          role="application"
          aria-label={`${jobName}: ${outline.groups.length} groups of tasks, from left to right as they wait for each other`}
          aria-describedby="graph-keys"
        />
        {pointed !== null && box !== undefined && (
          <Hint box={box} card={pointed.place.card} at={pointed.at} within={frame.current} />
        )}
        <div className="visually-hidden" role="status" aria-live="polite">
          {said}
        </div>
      </div>
      <Legend outline={outline} />
      <p id="graph-keys" className={styles.keys}>
        Drag or scroll to move, Ctrl and scroll (or pinch) to zoom. Keys: arrows move, + and − zoom, 0 fits it to the screen, Shift with
        arrows goes from task to task, Enter opens.
      </p>
    </div>
  );
}

/** Lays out when the shape has changed, and hands every scene that fits its layout to the canvas. */
function useLayout(
  scene: Scene,
  graph: React.RefObject<GraphCanvas | null>,
  anchor: React.RefObject<string | null>,
): void {
  const layouter = useRef<Layouter | null>(null);
  const made = useRef<{ readonly shape: string; readonly layout: Layout } | null>(null);
  const wanted = useRef(scene);
  useEffect(() => {
    wanted.current = scene;
    if (made.current?.shape === scene.shape) {
      graph.current?.show(scene, made.current.layout, null);
      return;
    }
    layouter.current ??= new Layouter();
    layouter.current.lay(scene, (layout) => {
      // Meanwhile only states can have changed: another shape would have asked for another layout.
      made.current = { shape: scene.shape, layout };
      graph.current?.show(wanted.current.shape === scene.shape ? wanted.current : scene, layout, anchor.current);
      anchor.current = null;
    });
  }, [scene, graph, anchor]);
  useEffect(
    () => () => {
      layouter.current?.stop();
      layouter.current = null;
      made.current = null;
    },
    [],
  );
}

interface UnfoldedGroupProps {
  readonly name: string;
  readonly count: number;
  /** null: all of them are here. */
  readonly list: PagedList<Member> | null;
  more(): void;
  all(): void;
  halt(): void;
  fold(): void;
}

function UnfoldedGroup({ name, count, list, more, all, halt, fold }: UnfoldedGroupProps) {
  return (
    <div className={styles.group}>
      <strong>{name}</strong>
      <span className="muted">
        {list === null || !list.hasMore
          ? count.toLocaleString()
          : `${shortNumber(list.items.length)} of ${count.toLocaleString()}`}
      </span>
      {list?.problem != null && (
        <span role="alert" className={styles.bad}>
          Not read: {list.problem.detail ?? list.problem.title}
        </span>
      )}
      {list !== null && list.hasMore && !list.isReading && (
        <>
          <Button kind="quiet" onClick={more}>
            Show more
          </Button>
          <Button kind="quiet" onClick={all}>
            Show all
          </Button>
        </>
      )}
      {list?.isReading === true && (
        <Button kind="quiet" onClick={halt}>
          Reading… Stop
        </Button>
      )}
      <Button kind="quiet" onClick={fold}>
        Fold<span className="visually-hidden"> {name}</span>
      </Button>
    </div>
  );
}

function spoken(scene: Scene, { box: at, card }: Place): string {
  const box = scene.boxes[at];
  if (box === undefined) return "";
  const member = box.kind === "block" && card !== null ? box.members[card] : box.kind === "task" ? box.member : null;
  if (member != null) return `${member.name} ${member.id}, ${member.state.replaceAll("_", " ")}`;
  const states = Object.entries(box.group.states).map(([state, count]) => `${count} ${state.replaceAll("_", " ")}`);
  return `${box.name}, ${box.group.count === 1 ? "" : `${box.group.count} tasks, `}${states.join(", ")}`;
}
