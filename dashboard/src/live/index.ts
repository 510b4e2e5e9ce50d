export { LiveContext, useInterrupted, useLive, useLiveMessages } from "./hooks";
export { LiveHub } from "./hub";
export type * from "./topics";
