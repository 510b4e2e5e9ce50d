/** All channels of this page. Whoever watches the same topic shares one; what is known of it is shared as well. */

import { Channel, browser, type ChannelStatus, NOT_AUTHENTICATED, type Surroundings } from "./channel";
import { animationFrames, Gatherer, type Frames } from "./frames";
import { type LiveMessage, pathOf, type Topic } from "./topics";

export interface Watcher {
  messages(messages: readonly LiveMessage[]): void;
  status(status: ChannelStatus): void;
}

interface Watched {
  readonly channel: Channel;
  readonly gatherer: Gatherer<LiveMessage>;
  readonly watchers: Set<Watcher>;
  status: ChannelStatus;
  /** From the moment it was cut until it is open again. */
  interrupted: boolean;
  /** The last one of each type, for who comes late. */
  readonly latest: Map<string, LiveMessage>;
  ending: number | null;
}

/** A page that is left for another that watches the same must not close and open in between. */
const LINGER = 1500;

export class LiveHub {
  private readonly topics = new Map<string, Watched>();
  private readonly listeners = new Set<() => void>();
  /** Called when the server knows the caller no more. */
  whenSignedOut: () => void = () => undefined;

  constructor(
    private readonly around: Surroundings = browser,
    private readonly frames: Frames = animationFrames,
  ) {}

  /** Gives what ends it. */
  watch(topic: Topic, watcher: Watcher): () => void {
    const key = pathOf(topic);
    const watched = this.topics.get(key) ?? this.begin(key, topic);
    if (watched.ending !== null) {
      this.around.forget(watched.ending);
      watched.ending = null;
    }
    watched.watchers.add(watcher);
    watcher.status(watched.status);
    return () => {
      watched.watchers.delete(watcher);
      if (watched.watchers.size === 0 && watched.ending === null) {
        watched.ending = this.around.after(LINGER, () => this.end(key, watched));
      }
    };
  }

  /** The last state of a topic that is being watched. */
  latest(topic: Topic, type: LiveMessage["type"]): LiveMessage | undefined {
    return this.topics.get(pathOf(topic))?.latest.get(type);
  }

  /** Whether something that is watched is interrupted; for the banner. */
  readonly isInterrupted = (): boolean => {
    for (const watched of this.topics.values()) {
      if (watched.watchers.size > 0 && watched.interrupted) return true;
    }
    return false;
  };

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly hurry = (): void => {
    for (const watched of this.topics.values()) watched.channel.hurry();
  };

  /** Somebody else is logged in, or nobody: what was known is not theirs. */
  reset(): void {
    for (const [key, watched] of [...this.topics]) this.end(key, watched);
  }

  private begin(key: string, topic: Topic): Watched {
    const watchers = new Set<Watcher>();
    const latest = new Map<string, LiveMessage>();
    const gatherer = new Gatherer<LiveMessage>((messages) => {
      for (const watcher of [...watchers]) watcher.messages(messages);
    }, this.frames);
    const channel = new Channel(
      topic,
      {
        message: (message) => {
          latest.set(message.type, message);
          gatherer.add(message);
        },
        status: (status) => this.changed(watched, status),
      },
      this.around,
    );
    const watched: Watched = {
      channel,
      gatherer,
      watchers,
      latest,
      status: { state: "connecting" },
      interrupted: false,
      ending: null,
    };
    this.topics.set(key, watched);
    channel.start();
    return watched;
  }

  private changed(watched: Watched, status: ChannelStatus): void {
    watched.status = status;
    if (status.state !== "connecting") watched.interrupted = status.state === "waiting";
    if (status.state === "refused" && status.code === NOT_AUTHENTICATED) this.whenSignedOut();
    for (const watcher of [...watched.watchers]) watcher.status(status);
    for (const listener of [...this.listeners]) listener();
  }

  private end(key: string, watched: Watched): void {
    if (watched.ending !== null) this.around.forget(watched.ending);
    watched.channel.stop();
    watched.gatherer.stop();
    if (this.topics.get(key) === watched) this.topics.delete(key);
    for (const listener of [...this.listeners]) listener();
  }
}
