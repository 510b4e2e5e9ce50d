/** What somebody writes into the form for one more task. */

import { inexactIn } from "@/api";

export interface Read<Value> {
  readonly value: Value;
  readonly error?: string;
}

export function readKwargs(text: string): Read<Readonly<Record<string, unknown>>> {
  if (text.trim() === "") return { value: {} };
  try {
    const value: unknown = JSON.parse(text);
    const inexact = inexactIn(text);
    if (inexact !== null) return { value: {}, error: inexact };
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return { value: value as Readonly<Record<string, unknown>> };
    }
    return { value: {}, error: 'Write an object: {"name": value}' };
  } catch (error) {
    return { value: {}, error: `No JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** "17, 18 #19" → 17, 18, 19. */
export function readIds(text: string): Read<readonly number[]> {
  const words = text.split(/[\s,;#]+/).filter((word) => word !== "");
  const wrong = words.find((word) => !/^[1-9]\d{0,15}$/.test(word));
  if (wrong !== undefined) return { value: [], error: `${wrong} is no id of a task` };
  return { value: [...new Set(words.map(Number))] };
}
