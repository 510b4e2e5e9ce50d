"""The endpoints of the specifications, with their own words, over the same ledger."""
