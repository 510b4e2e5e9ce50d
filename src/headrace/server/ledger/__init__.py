"""What stands between an app over HTTP and the ledger: bounds, who submits what, what is shown."""
