"""Tasks that are ready to use. Each is an application on the public names of headrace, and imports nothing below."""
