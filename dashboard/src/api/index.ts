export { api, call } from "./client";
export { nextOf } from "./links";
export { asProblem, placedErrors, ProblemError } from "./problem";
export { useListing, type Listing, type Page } from "./queries";
export { holdsInexact, holdsRedacted, inexactIn, tooLarge } from "./shown";
// Wire types by the names that the OpenAPI document gives them: `import type { wire } from "@/api"`, then wire.JobShown.
export type * as wire from "./schema";
