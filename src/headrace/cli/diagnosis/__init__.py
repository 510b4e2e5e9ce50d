"""What `headrace doctor` looks at: each check says what is wrong and how to mend it, and changes nothing."""
