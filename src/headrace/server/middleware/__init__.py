"""What happens to every request before and after its route. Plain ASGI: no task of its own, no copy of a stream."""
