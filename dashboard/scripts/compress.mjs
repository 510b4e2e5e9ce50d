// Beside each file that is text, the same compressed: the server sends those to browsers that take them.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const built = fileURLToPath(new URL("../../src/headrace/server/static", import.meta.url));
const TEXT = /\.(?:js|css|html|svg|json)$/;
const SMALLEST = 1024;

for (const name of readdirSync(built, { recursive: true })) {
  if (!TEXT.test(name)) continue;
  const file = join(built, name);
  const content = readFileSync(file);
  if (content.length < SMALLEST) continue;
  writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }));
  writeFileSync(`${file}.br`, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
}
