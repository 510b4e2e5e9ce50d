import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent, type RefObject } from "react";
import { flushSync } from "react-dom";

import { IconButton } from "@/ui";
import { classes } from "@/ui/classes";
import { CloseIcon, SearchIcon } from "@/ui/icons";

import { apply, complete, type Known, type Suggestion } from "./completion";
import { parseSearch } from "./query";
import styles from "./SearchBox.module.css";

interface SearchBoxProps {
  /** What is searched for; the text in the field may be ahead of it. */
  readonly value: string;
  change(value: string): void;
  readonly known: Known;
  readonly field: RefObject<HTMLInputElement | null>;
  /** Called when the field is left downwards. */
  leave(): void;
}

/** A search is done when somebody stops writing, and it can be read; Enter does it at once. */
const PAUSE = 350;

export function SearchBox({ value, change, known, field, leave }: SearchBoxProps) {
  const [text, setText] = useState(value);
  const [cursor, setCursor] = useState(value.length);
  const [isOpen, setIsOpen] = useState(false);
  const [active, setActive] = useState<number | null>(null);
  const id = useId();
  const list = useRef<HTMLUListElement>(null);
  const sent = useRef(value);
  const suggestions = useMemo(() => (isOpen ? complete(text, cursor, known) : []), [isOpen, text, cursor, known]);
  const wrongs = useMemo(() => parseSearch(text).wrongs, [text]);
  // While it is being written at the cursor it is not wrong yet.
  const shownWrongs = isOpen && suggestions.length > 0 ? [] : wrongs;

  // Somebody else changed the search: a link, «back», a state that was chosen.
  useEffect(() => {
    if (value === sent.current) return;
    sent.current = value;
    setText(value);
    setCursor(value.length);
  }, [value]);

  useEffect(() => {
    if (text === sent.current || wrongs.length > 0) return undefined;
    const timer = window.setTimeout(() => send(text), PAUSE);
    return () => window.clearTimeout(timer);
  });

  useEffect(() => {
    if (active !== null) list.current?.children[active]?.scrollIntoView?.({ block: "nearest" });
  }, [active]);

  function send(next: string): void {
    sent.current = next.trim();
    change(next.trim());
  }

  function write(next: string, at: number): void {
    setText(next);
    setCursor(at);
    setActive(null);
    setIsOpen(true);
  }

  function choose(suggestion: Suggestion): void {
    const after = apply(text, suggestion);
    // At once: a key that is pressed before the cursor stands behind what was taken would write in front of it.
    flushSync(() => write(after.text, after.cursor));
    const input = field.current;
    if (input === null) return;
    input.focus();
    input.setSelectionRange(after.cursor, after.cursor);
  }

  function pressed(event: KeyboardEvent): void {
    const count = suggestions.length;
    switch (event.key) {
      case "ArrowDown":
        if (count === 0) leave();
        else setActive(active === null ? 0 : (active + 1) % count);
        break;
      case "ArrowUp":
        if (count === 0) return;
        setActive(active === null ? count - 1 : (active - 1 + count) % count);
        break;
      case "Enter": {
        const chosen = active === null ? undefined : suggestions[active];
        if (chosen !== undefined) choose(chosen);
        else {
          send(text);
          setIsOpen(false);
        }
        break;
      }
      case "Escape":
        if (count > 0) setIsOpen(false);
        else if (text !== "") clear();
        else field.current?.blur();
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  function clear(): void {
    setText("");
    setCursor(0);
    send("");
    field.current?.focus();
  }

  return (
    <div className={styles.box}>
      <div className={classes(styles.field, shownWrongs.length > 0 && styles.wrong)}>
        <SearchIcon />
        <input
          ref={field}
          role="combobox"
          aria-label="Search tasks"
          aria-expanded={suggestions.length > 0}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={active === null || suggestions.length === 0 ? undefined : `${id}-${active}`}
          aria-describedby={shownWrongs.length > 0 ? `${id}-wrong` : undefined}
          aria-invalid={shownWrongs.length > 0 || undefined}
          placeholder="Words, or state:failed queue:mail error:Timeout"
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          value={text}
          onChange={(event) => write(event.target.value, event.target.selectionStart ?? event.target.value.length)}
          onSelect={(event) => setCursor(event.currentTarget.selectionStart ?? 0)}
          onFocus={() => setIsOpen(true)}
          onBlur={() => {
            setIsOpen(false);
            setActive(null);
            if (text.trim() !== sent.current) send(text);
          }}
          onKeyDown={pressed}
        />
        {text !== "" && <IconButton label="Clear the search" icon={<CloseIcon />} onClick={clear} />}
      </div>
      <ul ref={list} id={`${id}-list`} role="listbox" aria-label="Suggestions" className={styles.list} hidden={suggestions.length === 0}>
        {suggestions.map((suggestion, at) => (
          <li
            key={suggestion.label}
            id={`${id}-${at}`}
            role="option"
            aria-selected={at === active}
            className={classes(styles.option, at === active && styles.active)}
            // The field keeps the focus.
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => choose(suggestion)}
          >
            <span className="mono">{suggestion.label}</span>
            {suggestion.hint !== "" && <span className={styles.hint}>{suggestion.hint}</span>}
          </li>
        ))}
      </ul>
      {shownWrongs.length > 0 && (
        <ul id={`${id}-wrong`} className={styles.wrongs} role="alert">
          {shownWrongs.map((wrong) => (
            <li key={`${wrong.from} ${wrong.message}`}>{wrong.message}</li>
          ))}
        </ul>
      )}
    </div>
  );
}
