import { useCallback, useContext, useEffect, useMemo, useState } from "react";
import { Link, NavLink, Outlet, ScrollRestoration, useLocation, useNavigate } from "react-router";

import { LiveContext, useInterrupted } from "@/live";
import { Button, IconButton, useToasts } from "@/ui";
import { classes } from "@/ui/classes";
import { CloseIcon, MenuIcon, MoonIcon, ScreenIcon, SearchIcon, SunIcon } from "@/ui/icons";

import { CommandPalette } from "./CommandPalette";
import { Logo } from "./Logo";
import { GROUPS, type Command, type CommandContext, type Panel, type Shortcut } from "./panel";
import { may } from "./roles";
import { useLogOut, useSession } from "./session";
import { ShortcutHelp } from "./ShortcutHelp";
import { usePageShortcutList, useShortcuts } from "./shortcuts";
import { choose, useThemeChoice, type ThemeChoice } from "./theme";
import styles from "./Shell.module.css";

const GROUP_TITLES = { observe: "Observe", work: "Work", operate: "Operate", administer: "Administer" } as const;

/** Around every page: the way to the others, the palette, who is logged in, and whether what is shown is live. */
export function Shell({ panels }: { readonly panels: readonly Panel[] }) {
  const session = useSession();
  const navigate = useNavigate();
  const location = useLocation();
  const [isOpen, setIsOpen] = useState(false);
  const [hasPalette, setHasPalette] = useState(false);
  const [hasHelp, setHasHelp] = useState(false);
  const allowed = useMemo(
    () => panels.filter((panel) => panel.access === undefined || may(session, panel.access)),
    [panels, session],
  );
  const context = useMemo<CommandContext>(() => ({ navigate, session }), [navigate, session]);
  const closePalette = useCallback(() => setHasPalette(false), []);

  useEffect(() => setIsOpen(false), [location.pathname]);
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setHasPalette((shown) => !shown);
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);

  const ofPage = usePageShortcutList();
  const everywhere = useMemo<readonly Shortcut[]>(
    () => [
      { keys: "/", title: "Search", run: () => setHasPalette(true) },
      { keys: "?", title: "These keys", run: () => setHasHelp(true) },
      ...allowed.flatMap((panel) => panel.shortcuts ?? []),
    ],
    [allowed],
  );
  useShortcuts(useMemo(() => [...ofPage, ...everywhere], [ofPage, everywhere]), context);

  return (
    <div className={styles.shell}>
      <a href="#content" className={styles.skip}>
        Skip to the content
      </a>
      <header className={styles.bar}>
        <span className={styles.menu}>
          <IconButton
            label={isOpen ? "Close the menu" : "Open the menu"}
            aria-expanded={isOpen}
            aria-controls="navigation"
            icon={isOpen ? <CloseIcon /> : <MenuIcon />}
            onClick={() => setIsOpen(!isOpen)}
          />
        </span>
        <Link to="/" className={styles.brand} aria-label="Headrace, overview">
          <Logo />
          <span>Headrace</span>
        </Link>
        <button type="button" className={styles.search} onClick={() => setHasPalette(true)} aria-keyshortcuts="Control+K Meta+K">
          <SearchIcon />
          <span>Search or do…</span>
          <kbd>Ctrl K</kbd>
        </button>
        <ThemeButton />
        <UserMenu />
      </header>
      <nav id="navigation" className={classes(styles.navigation, isOpen && styles.open)} aria-label="Main">
        {GROUPS.map((group) => {
          const members = allowed.filter((panel) => panel.group === group);
          if (members.length === 0) return null;
          return (
            <div key={group} className={styles.group}>
              <p className={styles.groupTitle}>{GROUP_TITLES[group]}</p>
              <ul>
                {members.map((panel) => (
                  <li key={panel.id}>
                    <NavLink
                      to={`/${panel.path}`}
                      end={panel.path === ""}
                      className={({ isActive }) => classes(styles.item, isActive && styles.active)}
                    >
                      <panel.icon />
                      {panel.title}
                    </NavLink>
                  </li>
                ))}
              </ul>
            </div>
          );
        })}
        <p className={styles.version}>
          Headrace {session.version} · <a href="/api/docs">API</a>
        </p>
      </nav>
      <main id="content" className={styles.content} tabIndex={-1}>
        <ReconnectBanner />
        <Outlet />
      </main>
      <ScrollRestoration />
      {hasHelp && <ShortcutHelp ofPage={ofPage} everywhere={everywhere} close={() => setHasHelp(false)} />}
      {hasPalette && <CommandPalette commands={commandsOf(allowed, context)} context={context} close={closePalette} />}
    </div>
  );
}

function commandsOf(panels: readonly Panel[], context: CommandContext): readonly Command[] {
  const pages = panels.map((panel): Command => {
    const keys = panel.shortcuts?.find((shortcut) => shortcut.keys.startsWith("g "))?.keys;
    return {
      id: `open.${panel.id}`,
      title: `Go to ${panel.title}`,
      ...(keys === undefined ? {} : { keys }),
      run: ({ navigate }) => void navigate(`/${panel.path}`),
    };
  });
  const themes = (["dark", "light", "system"] as const).map(
    (choice): Command => ({ id: `theme.${choice}`, title: `Theme: ${choice}`, run: () => choose(choice) }),
  );
  return [...pages, ...panels.flatMap((panel) => panel.commands?.(context.session) ?? []), ...themes];
}

function ReconnectBanner() {
  const hub = useContext(LiveContext);
  const interrupted = useInterrupted();
  if (!interrupted) return null;
  return (
    <div role="status" className={styles.banner}>
      <p>
        <span className={styles.pulse} aria-hidden="true" />
        Reconnecting; what is shown may be old.
      </p>
      <Button kind="quiet" onClick={hub.hurry}>
        Try now
      </Button>
    </div>
  );
}

const NEXT: Readonly<Record<ThemeChoice, ThemeChoice>> = { system: "dark", dark: "light", light: "system" };
const THEME_ICONS = { system: ScreenIcon, dark: MoonIcon, light: SunIcon } as const;

function ThemeButton() {
  const choice = useThemeChoice();
  const Icon = THEME_ICONS[choice];
  const label = `Theme: ${choice === "system" ? "as the system" : choice}. Change to ${NEXT[choice]}`;
  return <IconButton label={label} icon={<Icon />} onClick={() => choose(NEXT[choice])} />;
}

function UserMenu() {
  const session = useSession();
  const toasts = useToasts();
  const logOut = useLogOut();
  if (!session.auth) {
    return (
      <span className={styles.user} title="This server has no users: whoever reaches it may do everything">
        no login
      </span>
    );
  }
  return (
    <span className={styles.user}>
      <span className={styles.name} title={`${session.name}, ${session.role}`}>
        {session.name} <span className="muted">{session.role}</span>
      </span>
      <Button
        kind="quiet"
        busy={logOut.isPending}
        onClick={() => logOut.mutate(undefined, { onError: (error) => toasts.fail("You are still logged in", error) })}
      >
        Log out
      </Button>
    </span>
  );
}
