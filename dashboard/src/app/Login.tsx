import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";

import { api, call } from "@/api";
import { Button, Input, Problem } from "@/ui";

import { Logo } from "./Logo";
import type { Session } from "./roles";
import styles from "./Login.module.css";

export function Login({ done }: { done(session: Session): void }) {
  const [byToken, setByToken] = useState(false);
  const [name, setName] = useState("");
  const [secret, setSecret] = useState("");
  const login = useMutation({
    mutationFn: () =>
      byToken
        ? call(api.POST("/api/v1/session/token", { body: { token: secret.trim() } }))
        : call(api.POST("/api/v1/session", { body: { name, password: secret } })),
    onSuccess: done,
    onError: () => setSecret(""),
  });

  function submit(event: FormEvent): void {
    event.preventDefault();
    login.mutate();
  }

  function change(): void {
    setByToken(!byToken);
    setSecret("");
    login.reset();
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
        {!byToken && (
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
        )}
        <Input
          key={byToken ? "token" : "password"}
          label={byToken ? "Token" : "Password"}
          type="password"
          autoComplete={byToken ? "off" : "current-password"}
          required
          autoFocus={byToken}
          value={secret}
          onChange={(event) => setSecret(event.target.value)}
        />
        <Button kind="primary" type="submit" busy={login.isPending}>
          {login.isPending ? "Logging in…" : "Log in"}
        </Button>
        <Button onClick={change}>{byToken ? "With a name and a password" : "With a token"}</Button>
        <details className={styles.help}>
          <summary>Neither yet?</summary>
          <p>
            The first start of a server makes the user <code>admin</code> and prints its token. On the machine of the
            database, give it a password, or another token, or add yourself:
          </p>
          <pre tabIndex={0}>
            {"headrace users password admin\nheadrace tokens create admin\nheadrace users add ada --role operator"}
          </pre>
        </details>
      </form>
    </main>
  );
}
