import { Dialog } from "@/ui";

import type { Shortcut } from "./panel";
import styles from "./ShortcutHelp.module.css";

interface ShortcutHelpProps {
  readonly ofPage: readonly Shortcut[];
  readonly everywhere: readonly Shortcut[];
  close(): void;
}

const IN_LISTS: readonly Pick<Shortcut, "keys" | "title">[] = [
  { keys: "j k", title: "Next and previous row (arrows do the same)" },
  { keys: "Enter", title: "Open the row" },
  { keys: "x", title: "Select the row (Shift with arrows: on the way)" },
];

/** `?`: every key that does something here. */
export function ShortcutHelp({ ofPage, everywhere, close }: ShortcutHelpProps) {
  return (
    <Dialog title="Keys" close={close}>
      {ofPage.length > 0 && <Keys title="On this page" shortcuts={ofPage} />}
      <Keys title="Everywhere" shortcuts={[{ keys: "Ctrl K", title: "Search, or do something" }, ...everywhere]} />
      <Keys title="In lists" shortcuts={IN_LISTS} />
    </Dialog>
  );
}

function Keys({ title, shortcuts }: { readonly title: string; readonly shortcuts: readonly Pick<Shortcut, "keys" | "title">[] }) {
  return (
    <section className={styles.keys}>
      <h3>{title}</h3>
      <dl>
        {shortcuts.map((shortcut) => (
          <div key={shortcut.keys}>
            <dt>
              {shortcut.keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{shortcut.title}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
