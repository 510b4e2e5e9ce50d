"""The HTTP API, its users and what is shown live. `create_application(app, options)` gives an ASGI application."""
