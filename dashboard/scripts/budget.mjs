// What the first page loads must stay small: its scripts, and what they import at once, below 250 kB gzipped.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const built = fileURLToPath(new URL("../../src/headrace/server/static", import.meta.url));
const MOST = 250_000;

const page = readFileSync(join(built, "index.html"), "utf8");
const first = [...page.matchAll(/(?:src|href)="\/([^"]+\.js)"/g)].map((found) => found[1]);
const seen = new Set();
const waiting = [...first];
while (waiting.length > 0) {
  const name = waiting.pop();
  if (seen.has(name)) continue;
  seen.add(name);
  const text = readFileSync(join(built, name), "utf8");
  // Static imports alone: what is imported by a call comes later.
  for (const [, other] of text.matchAll(/(?:^|[;\n}])(?:import|export)[^;("']*?["']\.\/([^"']+\.js)["']/g)) waiting.push(`assets/${other}`);
}
const size = [...seen].reduce((sum, name) => sum + gzipSync(readFileSync(join(built, name)), { level: 9 }).length, 0);
const kilobytes = (size / 1000).toFixed(1);
if (size > MOST) {
  console.error(`The first load has ${kilobytes} kB of gzipped JavaScript, and may have ${MOST / 1000}: ${[...seen].join(", ")}`);
  process.exit(1);
}
console.log(`The first load has ${kilobytes} kB of gzipped JavaScript (of ${MOST / 1000})`);
