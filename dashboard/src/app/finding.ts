/** Which commands are meant by a few letters. */

import type { Command } from "./panel";

/** Those that fit, the best first; all of them, in their order, for an empty text. */
export function rank(commands: readonly Command[], text: string): readonly Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return commands;
  return commands
    .map((command, order) => ({ command, order, score: score(command, words) }))
    .filter((each) => each.score > 0)
    .sort((one, other) => other.score - one.score || one.order - other.order)
    .map((each) => each.command);
}

/** 0 when one of the words is not there at all. */
function score(command: Command, words: readonly string[]): number {
  const title = command.title.toLowerCase();
  const more = (command.keywords ?? "").toLowerCase();
  let sum = 0;
  for (const word of words) {
    const best = Math.max(fit(title, word), fit(more, word) * 0.6);
    if (best === 0) return 0;
    sum += best;
  }
  return sum;
}

function fit(text: string, word: string): number {
  if (text.startsWith(word)) return 4;
  const at = text.indexOf(word);
  if (at > 0) return /\W/.test(text[at - 1] ?? "") ? 3 : 2;
  return isSpread(text, word) ? 1 : 0;
}

/** All letters, in their order, with others in between. */
function isSpread(text: string, word: string): boolean {
  let at = 0;
  for (const letter of word) {
    at = text.indexOf(letter, at) + 1;
    if (at === 0) return false;
  }
  return true;
}
