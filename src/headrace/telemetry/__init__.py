"""What happened, as typed events on a synchronous bus, and the sinks that listen to it. Decides nothing."""
