"""What the first page shows: rates, latencies, depths, failures. Figures are kept for a while, and say how old."""
