import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";

import type { ChannelStatus } from "./channel";
import { LiveHub } from "./hub";
import { type LiveMessage, type MessageOf, pathOf, type Topic } from "./topics";

export const LiveContext = createContext<LiveHub>(new LiveHub());

/**
 * Calls `take` with what has arrived, at most once a frame, for as long as the component is shown. null watches nothing.
 * Gives how the connection is.
 */
export function useLiveMessages<T extends Topic>(
  topic: T | null,
  take: (messages: readonly MessageOf<T>[]) => void,
): ChannelStatus {
  const hub = useContext(LiveContext);
  const [status, setStatus] = useState<ChannelStatus>({ state: "connecting" });
  const latestTake = useRef(take);
  useEffect(() => {
    latestTake.current = take;
  });
  const key = topic === null ? null : pathOf(topic);
  // The path says everything about a topic; a new object for the same one is no reason to connect again.
  const stable = useMemo(() => topic, [key]);
  useEffect(() => {
    if (stable === null) return undefined;
    return hub.watch(stable, {
      messages: (messages) => latestTake.current(messages as readonly MessageOf<T>[]),
      status: setStatus,
    });
  }, [hub, stable]);
  return status;
}

/**
 * The present state of a topic, or undefined until it is known:
 *
 *     const system = useLive({ kind: "system" }, "system");
 */
export function useLive<T extends Topic, Type extends MessageOf<T>["type"]>(
  topic: T | null,
  type: Type,
): Extract<MessageOf<T>, { readonly type: Type }> | undefined {
  type Found = Extract<MessageOf<T>, { readonly type: Type }>;
  const hub = useContext(LiveContext);
  const known = topic === null ? undefined : (hub.latest(topic, type as LiveMessage["type"]) as Found | undefined);
  const [found, setFound] = useState<{ readonly key: string; readonly message: Found } | undefined>();
  const key = topic === null ? null : pathOf(topic);
  const take = useCallback(
    (messages: readonly MessageOf<T>[]) => {
      const last = messages.findLast((message) => message.type === type) as Found | undefined;
      if (last !== undefined && key !== null) setFound({ key, message: last });
    },
    [key, type],
  );
  useLiveMessages(topic, take);
  return found !== undefined && found.key === key ? found.message : known;
}

/** Whether something that is watched is interrupted just now. */
export function useInterrupted(): boolean {
  const hub = useContext(LiveContext);
  return useSyncExternalStore(hub.subscribe, hub.isInterrupted);
}
