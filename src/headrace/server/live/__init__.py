"""What is shown while it happens: WebSocket and SSE over durable sequences."""
