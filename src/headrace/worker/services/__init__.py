"""What runs beside the attempts, each a `Service` of a few dozen lines."""
