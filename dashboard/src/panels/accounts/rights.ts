/** What roles and tokens allow, and how tokens stand. Pure; the server decides, this says so beforehand. */

import type { wire } from "@/api";
import type { Option, Tone } from "@/ui";

export type Role = wire.Role;
export type Scope = wire.Scope;

export const ROLES: readonly Option<Role>[] = (["viewer", "user", "operator", "admin"] as const).map((role) => ({
  value: role,
  label: role,
}));

export const ROLE_WORDS: Readonly<Record<Role, string>> = {
  viewer: "Sees everything, does nothing.",
  user: "Submits; sees and controls their own.",
  operator: "Sees and controls everything, and approves.",
  admin: "Users, tokens and the audit log as well.",
};

/** The most that each role may be given, as the server has it. */
export const SCOPES_OF: Readonly<Record<Role, readonly Scope[]>> = {
  viewer: ["read"],
  user: ["read", "submit", "control"],
  operator: ["read", "submit", "control"],
  admin: ["read", "submit", "control", "admin"],
};

export const SCOPE_WORDS: Readonly<Record<Scope, string>> = {
  read: "look at what the role may see",
  submit: "enqueue tasks and jobs",
  control: "retry, cancel, pause and the like",
  admin: "users, tokens and the audit log",
};

/** In the order in which they are offered. */
export function inOrder(scopes: readonly Scope[]): readonly Scope[] {
  return SCOPES_OF.admin.filter((scope) => scopes.includes(scope));
}

const DAY = 86_400;
export const LIFETIMES: readonly Option[] = [
  { value: String(DAY), label: "a day" },
  { value: String(7 * DAY), label: "a week" },
  { value: String(30 * DAY), label: "30 days" },
  { value: String(90 * DAY), label: "90 days" },
  { value: String(365 * DAY), label: "a year" },
  { value: "", label: "until it is revoked" },
];

export interface Standing {
  readonly tone: Tone;
  readonly text: string;
  readonly isGood: boolean;
}

/** Whether a token is still good. */
export function standingOf(token: Pick<wire.TokenAnswer, "revoked_at" | "expires_at">, now: number): Standing {
  if (token.revoked_at !== null) return { tone: "ended", text: "revoked", isGood: false };
  if (token.expires_at !== null && Date.parse(token.expires_at) <= now) return { tone: "ended", text: "expired", isGood: false };
  return { tone: "good", text: "good", isGood: true };
}

export function userStanding(user: Pick<wire.UserAnswer, "disabled" | "locked_until">, now: number): Standing {
  if (user.disabled) return { tone: "ended", text: "disabled", isGood: false };
  if (user.locked_until !== null && Date.parse(user.locked_until) > now) return { tone: "warn", text: "locked", isGood: false };
  return { tone: "good", text: "enabled", isGood: true };
}

/** A browser's long name of itself, cut down to what tells two of them apart. */
export function browserOf(userAgent: string): string {
  const known = [
    ["Firefox", /Firefox\/(\d+)/],
    ["Edge", /Edg\/(\d+)/],
    ["Chrome", /Chrom(?:e|ium)\/(\d+)/],
    ["Safari", /Version\/(\d+).*Safari/],
  ] as const;
  const systems = [
    ["Android", /Android/],
    ["iPhone", /iPhone/],
    ["iPad", /iPad/],
    ["Windows", /Windows/],
    ["macOS", /Mac OS X/],
    ["Linux", /Linux/],
  ] as const;
  for (const [name, pattern] of known) {
    const version = pattern.exec(userAgent)?.[1];
    if (version === undefined) continue;
    const system = systems.find(([, each]) => each.test(userAgent))?.[0];
    return `${name} ${version}${system === undefined ? "" : ` on ${system}`}`;
  }
  return userAgent;
}
