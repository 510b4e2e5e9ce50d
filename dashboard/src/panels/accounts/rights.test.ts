import { expect, it } from "vitest";

import { browserOf, inOrder, standingOf, userStanding } from "./rights";

const NOW = Date.parse("2026-05-01T08:00:00Z");

it("says whether a token is still good", () => {
  expect(standingOf({ revoked_at: null, expires_at: null }, NOW)).toMatchObject({ text: "good", isGood: true });
  expect(standingOf({ revoked_at: null, expires_at: "2026-05-01T08:00:01Z" }, NOW).isGood).toBe(true);
  expect(standingOf({ revoked_at: null, expires_at: "2026-05-01T08:00:00Z" }, NOW).text).toBe("expired");
  expect(standingOf({ revoked_at: "2026-04-01T08:00:00Z", expires_at: null }, NOW).text).toBe("revoked");
});

it("says whether a user may come in", () => {
  expect(userStanding({ disabled: true, locked_until: null }, NOW).text).toBe("disabled");
  expect(userStanding({ disabled: false, locked_until: "2026-05-01T08:10:00Z" }, NOW).text).toBe("locked");
  expect(userStanding({ disabled: false, locked_until: "2026-05-01T07:10:00Z" }, NOW).text).toBe("enabled");
});

it("orders scopes from little to much", () => {
  expect(inOrder(["admin", "control", "read"])).toEqual(["read", "control", "admin"]);
});

it("tells browsers apart", () => {
  const chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
  expect(browserOf(chrome)).toBe("Chrome 140 on Linux");
  expect(browserOf(`${chrome} Edg/140.0.0.0`)).toBe("Edge 140 on Linux");
  expect(browserOf("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 Version/18.0 Mobile Safari/604")).toBe(
    "Safari 18 on iPhone",
  );
  expect(browserOf("curl/8.0")).toBe("curl/8.0");
});
