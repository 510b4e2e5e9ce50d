import { expect, it } from "vitest";

import { nextOf } from "./links";

it("finds where a list goes on", () => {
  expect(nextOf('</api/v1/tasks/5/attempts?limit=500&cursor=WzMwMV0>; rel="next"')).toBe("WzMwMV0");
  expect(nextOf('</a?cursor=1>; rel="prev", </a?cursor=2>; rel="next"')).toBe("2");
  for (const none of [null, "", '</a?cursor=1>; rel="prev"', '</a>; rel="next"']) expect(nextOf(none)).toBeNull();
});
