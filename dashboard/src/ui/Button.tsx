import type { ButtonHTMLAttributes, ReactNode } from "react";
import { Link, type LinkProps } from "react-router";

import { classes } from "./classes";
import styles from "./Button.module.css";

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly kind?: "plain" | "primary" | "danger" | "quiet";
  readonly icon?: ReactNode;
  /** Shown and not pressable while it is true: what was asked for is on its way. */
  readonly busy?: boolean;
}

export function Button({ kind = "plain", icon, busy = false, children, className, disabled, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      disabled={disabled === true || busy}
      aria-busy={busy || undefined}
      className={classes(styles.button, styles[kind], className)}
    >
      {icon}
      {children}
    </button>
  );
}

interface LinkButtonProps extends Omit<LinkProps, "className"> {
  readonly kind?: "plain" | "primary" | "quiet";
  readonly icon?: ReactNode;
}

/** A link that looks like a button: it opens in another tab, too, and is called a link by those who read aloud. */
export function LinkButton({ kind = "plain", icon, children, ...rest }: LinkButtonProps) {
  return (
    <Link {...rest} className={classes(styles.button, styles.link, styles[kind])}>
      {icon}
      {children}
    </Link>
  );
}

/** A button that is only an icon: its label is for those who do not see it, and on hover. */
export function IconButton({ label, icon, ...rest }: ButtonProps & { readonly label: string }) {
  return <Button kind="quiet" {...rest} icon={icon} aria-label={label} title={label} />;
}
