import { useEffect, useState } from "react";
import { Link, useParams } from "react-router";

import { useMay } from "@/app/session";
import { Badge, Button, depthText, Fact, Facts, Page, Problem, Section, Skeleton } from "@/ui";
import { PauseIcon, PlayIcon } from "@/ui/icons";

import { Counted } from "./Counted";
import { Depths } from "./Depths";
import { depthOf, idle, rateText, sampled, type Queue, type Sample } from "./figures";
import { Lanes } from "./Lanes";
import { LimitForm, RateForm } from "./LimitForms";
import styles from "./Queues.module.css";
import { Rates } from "./Rates";
import { usePausing, useQueues } from "./useQueues";

const KEPT = 10 * 60_000;

export function Component() {
  const { name = "" } = useParams();
  const { queues, isPending, error, seenAt, retry } = useQueues();
  // One that has nothing to do, and no settings, is on no list; it is a queue all the same.
  const queue = queues.find((each) => each.name === name) ?? idle(name);
  const seen = useSeen(name, queue, seenAt);
  const mayOperate = useMay()({ role: "operator", scope: "control" });
  const pausing = usePausing();
  const crumbs = [{ title: "Queues", to: "/queues" }];
  if (isPending) {
    return (
      <Page title={name} crumbs={crumbs}>
        <Skeleton />
      </Page>
    );
  }
  const { depths } = queue;
  return (
    <Page
      title={name}
      crumbs={crumbs}
      aside={
        <>
          {queue.paused && <Badge tone="warn">paused</Badge>}
          <Counted at={seenAt} />
        </>
      }
      actions={
        mayOperate && (
          <Button
            icon={queue.paused ? <PlayIcon /> : <PauseIcon />}
            kind={queue.paused ? "primary" : "plain"}
            busy={pausing.isPending}
            onClick={() => pausing.mutate({ name, paused: !queue.paused })}
          >
            {queue.paused ? "Resume" : "Pause"}
          </Button>
        )
      }
    >
      {error !== null && <Problem title="What is shown is not up to date" error={error} retry={retry} />}
      <div className={styles.columns}>
        <Section title="Lanes">
          <Lanes
            fresh={depthText(depthOf(depths, "primary"))}
            again={depthText(depthOf(depths, "retry"))}
            ratio={queue.retry_ratio}
          />
        </Section>
        <Section title="In hand, and not ready" actions={<Links name={name} />}>
          <Facts>
            <Fact name="Running">{depthText(depthOf(depths, "running"))}</Fact>
            <Fact name="Taken, about to run">{depthText(depthOf(depths, "claimed"))}</Fact>
            <Fact name="Not due yet">{depthText(depthOf(depths, "scheduled"))}</Fact>
            <Fact name="Waiting for something">{depthText(depthOf(depths, "waiting"))}</Fact>
          </Facts>
        </Section>
      </div>
      <div className={styles.columns}>
        <Rates queue={name} />
        <Depths queue={name} seen={seen} />
      </div>
      <Section title="Limits">
        {mayOperate ? (
          <div className="stack">
            <LimitForm key={`limit ${name}`} queue={queue} />
            <RateForm key={`rate ${name}`} queue={queue} />
            <p className="muted">
              They hold from the next start on, without a deployment, for tasks that wait already, too. Where the code gives
              this queue a limit as well, the smaller one counts.
            </p>
          </div>
        ) : (
          <Facts>
            <Fact name="Tasks at once">{queue.limit?.toLocaleString("en-US") ?? "no limit"}</Fact>
            <Fact name="Starts">{queue.rate === null ? "no limit" : rateText(queue.rate)}</Fact>
          </Facts>
        )}
      </Section>
    </Page>
  );
}

function Links({ name }: { readonly name: string }) {
  const quoted = /[\s"]/.test(name) ? JSON.stringify(name) : name;
  return (
    <span className="cluster">
      <Link to={`/tasks?q=${encodeURIComponent(`queue:${quoted}`)}`}>Its tasks</Link>
      <Link to={`/dead-letters?queue=${encodeURIComponent(name)}`}>Its dead letters</Link>
    </span>
  );
}

/** The depths of the last minutes, as far as this page has seen them: the ledger notes them once a minute. */
function useSeen(name: string, queue: Queue, seenAt: number): readonly Sample[] {
  const [history, setHistory] = useState<{ readonly name: string; readonly samples: readonly Sample[] }>({ name, samples: [] });
  useEffect(() => {
    if (seenAt === 0) return;
    setHistory((before) => ({
      name,
      samples: sampled(before.name === name ? before.samples : [], seenAt, queue.depths, KEPT),
    }));
    // Its depths are those of that moment: a new object with the same ones is no new sample.
  }, [name, seenAt]);
  return history.samples;
}
