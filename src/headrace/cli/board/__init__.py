"""What `headrace top` shows: bounded looks at the ledger, and how they fit on a screen of any size."""
