import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from "react";

import { classes } from "@/ui/classes";
import { SearchIcon } from "@/ui/icons";

import { rank } from "./finding";
import type { Command, CommandContext } from "./panel";
import styles from "./CommandPalette.module.css";

interface CommandPaletteProps {
  readonly commands: readonly Command[];
  readonly context: CommandContext;
  close(): void;
}

/** Ctrl-K or Cmd-K: write a few letters, Enter does it. A number opens the task of that id. */
export function CommandPalette({ commands, context, close }: CommandPaletteProps) {
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const id = useId();
  const found = useMemo(() => meant(commands, text).slice(0, MOST), [commands, text]);
  const at = Math.min(active, Math.max(0, found.length - 1));

  useEffect(() => {
    const element = dialog.current;
    if (element !== null && !element.open) element.showModal();
    return () => element?.close();
  }, []);
  useEffect(() => {
    list.current?.children[at]?.scrollIntoView?.({ block: "nearest" });
  }, [at]);

  function run(command: Command | undefined): void {
    if (command === undefined) return;
    close();
    command.run(context);
  }

  function pressed(event: KeyboardEvent): void {
    switch (event.key) {
      case "ArrowDown":
        setActive((at + 1) % Math.max(1, found.length));
        break;
      case "ArrowUp":
        setActive((at - 1 + found.length) % Math.max(1, found.length));
        break;
      case "Enter":
        run(found[at]);
        break;
      default:
        return;
    }
    event.preventDefault();
  }

  return (
    <dialog
      ref={dialog}
      className={styles.palette}
      aria-label="Commands"
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) close();
      }}
    >
      <div className={styles.inner}>
        <div className={styles.search}>
          <SearchIcon />
          <input
            autoFocus
            role="combobox"
            aria-expanded="true"
            aria-controls={`${id}-list`}
            aria-activedescendant={found.length === 0 ? undefined : `${id}-${at}`}
            aria-label="Find a page, a command or a task by its id"
            placeholder="Find a page, a command, or a task by its id"
            autoComplete="off"
            spellCheck={false}
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              setActive(0);
            }}
            onKeyDown={pressed}
          />
          <kbd>Esc</kbd>
        </div>
        <ul ref={list} id={`${id}-list`} role="listbox" aria-label="Commands" className={styles.list}>
          {found.map((command, place) => (
            <li
              key={command.id}
              id={`${id}-${place}`}
              role="option"
              aria-selected={place === at}
              className={classes(styles.option, place === at && styles.active)}
              onPointerMove={() => setActive(place)}
              onClick={() => run(command)}
            >
              <span>{command.title}</span>
              {command.keys !== undefined && <kbd>{command.keys}</kbd>}
            </li>
          ))}
        </ul>
        {found.length === 0 && <p className={styles.none}>Nothing is called like that.</p>}
      </div>
    </dialog>
  );
}

const MOST = 50;

/** A number is what it names before all; a search for the words comes behind every command that they fit. */
function meant(commands: readonly Command[], text: string): readonly Command[] {
  const words = text.trim();
  if (words === "") return commands;
  const number = /^(?:#|task |job )?(\d{1,16})$/i.exec(words)?.[1];
  if (number !== undefined) {
    return [
      { id: "typed.task", title: `Open task ${number}`, run: ({ navigate }) => void navigate(`/tasks/${number}`) },
      { id: "typed.job", title: `Open job ${number}`, run: ({ navigate }) => void navigate(`/jobs/${number}`) },
    ];
  }
  const search: Command = {
    id: "typed.search",
    title: `Search tasks for “${words}”`,
    run: ({ navigate }) => void navigate(`/tasks?q=${encodeURIComponent(words)}`),
  };
  return [...rank(commands, words).slice(0, MOST - 1), search];
}
