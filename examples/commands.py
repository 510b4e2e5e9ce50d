"""A command runs without a shell; its output and its exit code are kept."""

import sys

from headrace import App

app = App("sqlite:///commands.db")

if __name__ == "__main__":
    if "--results" in sys.argv:
        for record in app.tasks.list():
            print(record.kind, record.state, record.result)
    else:
        app.commands.submit([sys.executable, "-c", "print('counted', 6 * 7)"], timeout=60)
