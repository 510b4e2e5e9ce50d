import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";

import { api, call } from "@/api";
import { Button, Input, Problem } from "@/ui";

import { Logo } from "./Logo";
import type { Session } from "./roles";
import styles from "./Login.module.css";

export function Login({ done }: { done(session: Session): void }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const login = useMutation({
    mutationFn: () => call(api.POST("/api/v1/session", { body: { name, password } })),
    onSuccess: done,
    onError: () => setPassword(""),
  });

  function submit(event: FormEvent): void {
    event.preventDefault();
    login.mutate();
  }

  return (
    <main className={styles.login}>
      <form className={styles.form} onSubmit={submit} aria-labelledby="login-title">
        <Logo size={36} />
        <h1 id="login-title">Log in to Headrace</h1>
        {login.isError && (
          <Problem
            error={login.error}
            title={login.error.status === 401 ? "That did not let you in" : "Nobody could be logged in"}
          />
        )}
        <Input
          label="Name"
          autoComplete="username"
          autoCapitalize="none"
          spellCheck={false}
          required
          autoFocus
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <Input
          label="Password"
          type="password"
          autoComplete="current-password"
          required
          value={password}
          onChange={(event) => setPassword(event.target.value)}
        />
        <Button kind="primary" type="submit" busy={login.isPending}>
          {login.isPending ? "Logging in…" : "Log in"}
        </Button>
        <details className={styles.help}>
          <summary>No name or password yet?</summary>
          <p>
            The first start of a server makes the user <code>admin</code>, with a token and without a password. On the
            machine of the database, give it one, or add yourself:
          </p>
          <pre tabIndex={0}>{"headrace users password admin\nheadrace users add ada --role operator"}</pre>
        </details>
      </form>
    </main>
  );
}
