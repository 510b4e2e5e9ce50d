"""The API, and a page that uses it: `python serve.py`, then open http://127.0.0.1:8000/.

Without users, so on this machine only. `headrace server tasks:app` is the same API for others, with tokens.
"""

import sys
from pathlib import Path

import uvicorn
from fastapi.staticfiles import StaticFiles
from tasks import app

from headrace.server.application import create_application
from headrace.server.options import ServerOptions

options = ServerOptions(auth=False, port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
api = create_application(app, options)
api.mount("/", StaticFiles(directory=Path(__file__).parent / "page", html=True))

if __name__ == "__main__":
    uvicorn.run(api, host=options.host, port=options.port)
