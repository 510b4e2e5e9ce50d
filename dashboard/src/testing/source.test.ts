/** What is promised of the sources themselves. */

import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");
const files = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.tsx?$/.test(name) && name !== join("api", "schema.ts") && !name.endsWith("source.test.ts"))
  .map((name) => ({ name, text: withoutComments(readFileSync(join(root, name), "utf8")) }));

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/(^|\s)\/\/.*$/gm, "");
}

function having(pattern: RegExp): readonly string[] {
  return files.filter(({ text }) => pattern.test(text)).map(({ name }) => name);
}

describe("the sources", () => {
  it("are found", () => expect(files.length).toBeGreaterThan(50));

  it("have no any, and nothing that silences the compiler", () => {
    expect(having(/(?:: |<|\bas )any\b(?=[\s,;)>\]}|&=[]|$)|, any>/m)).toEqual([]);
    expect(files.filter(({ name }) => /@ts-(?:ignore|expect-error|nocheck)/.test(readFileSync(join(root, name), "utf8"))).map(({ name }) => name)).toEqual([]);
  });

  it("load nothing from elsewhere", () => {
    const foreign = files.filter(({ name, text }) => !/\.test\.tsx?$/.test(name) && /["'`]https?:\/\/(?!127\.0\.0\.1)/.test(text));
    expect(foreign.map(({ name }) => name)).toEqual([]);
  });

  it("put no markup together from text", () => expect(having(/dangerouslySetInnerHTML|\.innerHTML\s*=/)).toEqual([]));

  it("know of other panels by their addresses alone", () => {
    const strangers = files.flatMap(({ name, text }) => {
      const own = /^panels[/\\]([^/\\]+)/.exec(name)?.[1];
      if (own === undefined) return [];
      return [...text.matchAll(/from "(@\/panels\/[^"]+|(?:\.\.\/)+[^"]+)"/g)].flatMap(([, path = ""]) => {
        const target = path.startsWith("@/") ? path.slice(2) : relative(root, join(root, name, "..", path));
        return target.startsWith(join("panels", own)) ? [] : [`${name} imports ${path}`];
      });
    });
    expect(strangers).toEqual([]);
  });

  it("are known to the rest only through their description", () => {
    const reaching = files.filter(({ name, text }) => !name.startsWith("panels") && /from "(?:@\/|\.\.\/)panels\//.test(text));
    expect(reaching.map(({ name }) => name)).toEqual([]);
  });
});
