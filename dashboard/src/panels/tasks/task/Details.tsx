import { Link } from "react-router";

import type { wire } from "@/api";
import { Duration, Fact, Facts, Json, Section, Time } from "@/ui";

import { quoted } from "../search/query";
import { ENDED, HELD } from "./acts";

export function Details({ task }: { readonly task: wire.TaskDetail }) {
  const search = (key: string, value: string): string => `/tasks?q=${encodeURIComponent(`${key}:${quoted(value)}`)}`;
  return (
    <Section title="Details">
      <Facts>
        <Fact name="Queue">
          <Link to={`/queues/${encodeURIComponent(task.queue)}`}>{task.queue}</Link>
          {task.lane === "retry" && <span className="muted"> retry lane</span>}
        </Fact>
        <Fact name="Attempts">
          {attemptsText(task)}
          {task.run_no > 1 && <span className="muted">, run {task.run_no}</span>}
        </Fact>
        <Fact name="Priority">{task.priority}</Fact>
        <Fact name="Created">
          <Time at={task.created_at} />
        </Fact>
        {task.finished_at === null && Date.parse(task.eligible_at) > Date.parse(task.enqueued_at) && (
          <Fact name="Due">
            <Time at={task.eligible_at} />
          </Fact>
        )}
        <Fact name="Waited">
          <Duration seconds={task.timings.waited} {...(task.started_at === null && task.finished_at === null ? { since: task.enqueued_at } : {})} />
        </Fact>
        <Fact name="Ran">
          <Duration seconds={task.timings.ran} {...(task.state === "running" ? { since: task.started_at } : {})} />
        </Fact>
        {task.finished_at !== null && (
          <Fact name="Ended">
            <Time at={task.finished_at} />
          </Fact>
        )}
        {task.worker !== null && (
          <Fact name="Worker">
            <Link to={`/workers/${encodeURIComponent(task.worker)}`}>{task.worker}</Link>
          </Fact>
        )}
        {task.owner !== null && <Fact name="Owner">{task.owner}</Fact>}
        {task.losses > 0 && <Fact name="Workers lost under it">{task.losses}</Fact>}
        {task.dead_letter && (
          <Fact name="Dead letter">
            <Link to="/dead-letters">yes</Link>
          </Fact>
        )}
        {task.expires_at !== null && !ENDED.has(task.state) && (
          <Fact name="Expires">
            <Time at={task.expires_at} />
          </Fact>
        )}
        {task.waiting_on !== null && <Fact name="Waits on">{task.waiting_on}</Fact>}
        {task.approval !== null && (
          <Fact name="Approval">
            {task.approval.status}
            {task.approval.by !== null && ` by ${task.approval.by}`} {task.approval.at !== null && <Time at={task.approval.at} />}
            {task.approval.note !== null && <span className="muted"> {task.approval.note}</span>}
            {task.approval.status === "pending" && <span className="muted"> asks for {task.approval.role ?? "operator"}</span>}
          </Fact>
        )}
        {task.tags.length > 0 && (
          <Fact name="Tags">
            <span className="cluster">
              {task.tags.map((tag) => (
                <Link key={tag} to={search("tag", tag)}>
                  {tag}
                </Link>
              ))}
            </span>
          </Fact>
        )}
        <Fact name="Others of its name">
          <Link to={search("name", task.name)}>{task.name}</Link>
        </Fact>
      </Facts>
    </Section>
  );
}

export function Arguments({ task }: { readonly task: wire.TaskDetail }) {
  if (task.arguments === null || task.arguments === undefined) {
    return <p className="muted">They are written in a way that this server cannot read.</p>;
  }
  if (typeof task.arguments === "object" && Object.keys(task.arguments).length === 0) return <p className="muted">None.</p>;
  return <Json value={task.arguments} label="the arguments" />;
}

/** The one that runs is charged when it ends, but who looks at it counts it. */
function attemptsText({ attempt, max_attempts, state }: wire.TaskDetail): string {
  return HELD.has(state) ? `number ${attempt + 1} of ${max_attempts}` : `${attempt} of ${max_attempts}`;
}
