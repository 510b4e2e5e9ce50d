"""The dashboard in a real browser: Debian's Chromium, driven by Playwright, against a real server, worker and ledger.
Every screen is opened, every act is done with the mouse and the keyboard, and its effect is looked for in the store.

    .venv/bin/pytest tests/browser          # the small size
    make test-all ARGS=tests/browser        # as .ci/run does

- `stage` has the processes and the ledger, `scene` fills it with tasks in every state, `shop` are the tasks
- `browsing` opens pages as somebody, and keeps what went wrong in them
- `screens` lists every screen; what must hold for all of them goes through that list
"""
