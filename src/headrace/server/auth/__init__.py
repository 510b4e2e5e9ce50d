"""Who calls: passwords, tokens, sessions, and what each may do."""
