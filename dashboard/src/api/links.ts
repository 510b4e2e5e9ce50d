/** Where a list goes on, as the header `Link` says it (RFC 8288): for answers that have no `next` in their body. */

const NEXT = /<([^>]*)>\s*;[^,]*\brel="?next"?/;

/** The cursor of the next page; null where nothing is behind. */
export function nextOf(link: string | null): string | null {
  const query = link === null ? undefined : NEXT.exec(link)?.[1]?.split("?")[1];
  return query === undefined ? null : new URLSearchParams(query).get("cursor");
}
