import { Input, TextArea } from "@/ui";

import type { CommandDraft } from "./command";

interface CommandFieldsProps {
  readonly draft: CommandDraft;
  change(draft: CommandDraft): void;
  readonly wrongs: ReadonlyMap<string, string>;
}

/** A program on a worker. No shell reads it: nothing in it is replaced. */
export function CommandFields({ draft, change, wrongs }: CommandFieldsProps) {
  const set = (part: Partial<CommandDraft>): void => change({ ...draft, ...part });
  return (
    <>
      <Input
        label="Command"
        className="mono"
        placeholder="python train.py --epochs 3"
        hint="The program and its arguments. Quotes keep words together; there is no shell, so no pipes and no variables."
        autoComplete="off"
        spellCheck={false}
        error={wrongs.get("argv")}
        value={draft.line}
        onChange={(event) => set({ line: event.target.value })}
      />
      <Input
        label="Folder"
        hint="Left out: the worker's own"
        autoComplete="off"
        spellCheck={false}
        error={wrongs.get("cwd")}
        value={draft.cwd}
        onChange={(event) => set({ cwd: event.target.value })}
      />
      <TextArea
        label="Environment"
        hint="NAME=value, one in each line; added to the worker's own"
        rows={3}
        spellCheck={false}
        error={wrongs.get("env")}
        value={draft.env}
        onChange={(event) => set({ env: event.target.value })}
      />
      <TextArea
        label="Standard input"
        rows={3}
        spellCheck={false}
        error={wrongs.get("stdin")}
        value={draft.stdin}
        onChange={(event) => set({ stdin: event.target.value })}
      />
    </>
  );
}
