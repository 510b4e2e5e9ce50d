import type { ButtonHTMLAttributes, ReactNode } from "react";

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

/** A button that is only an icon: its label is for those who do not see it, and on hover. */
export function IconButton({ label, icon, ...rest }: ButtonProps & { readonly label: string }) {
  return <Button kind="quiet" {...rest} icon={icon} aria-label={label} title={label} />;
}
