/** Who may do what: the same rules as the server's, which alone decides. Here they only hide what would be refused. */

import type { wire } from "@/api";

export type Role = wire.Role;
export type Scope = wire.Scope;
export type Session = wire.SessionAnswer;

const RANKS: Readonly<Record<Role, number>> = { viewer: 0, user: 1, operator: 2, admin: 3 };

export interface Access {
  /** The least role. */
  readonly role?: Role;
  /** What their token or session has to be good for. */
  readonly scope?: Scope;
  /** It belongs to nobody, and users see their own things alone. */
  readonly overseer?: boolean;
}

export function may(session: Session, access: Access): boolean {
  if (access.role !== undefined && RANKS[session.role] < RANKS[access.role]) return false;
  if (access.scope !== undefined && !session.scopes.includes(access.scope)) return false;
  return !(access.overseer === true && session.role === "user");
}

/** The least role of who decides what asks for this one: an operator's, and an admin's for roles that are none of ours. */
export function deciderOf(asked: string | null): Role {
  if (asked === null) return "operator";
  if (!isRole(asked)) return "admin";
  return RANKS[asked] < RANKS.operator ? "operator" : asked;
}

function isRole(text: string): text is Role {
  return Object.hasOwn(RANKS, text);
}

/** Whether an act on a thing of this owner is theirs: operators act on everything, users on their own. */
export function mayControl(session: Session, owner: string | null): boolean {
  if (!session.scopes.includes("control")) return false;
  return may(session, { role: "operator" }) || (session.role === "user" && owner === session.name);
}
