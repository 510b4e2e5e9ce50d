#!/bin/sh
# Writes the wire types anew: the server's OpenAPI document (openapi.json), and TypeScript made of it (schema.ts).
# PYTHON is an interpreter that has headrace; left out, that of the project's own environment.
set -eu
cd "$(dirname "$0")/.."
"${PYTHON:-../.venv/bin/python}" scripts/openapi.py src/api/openapi.json
npx --no-install openapi-typescript src/api/openapi.json --output src/api/schema.ts --root-types --root-types-no-schema-prefix >/dev/null
echo "src/api/openapi.json and src/api/schema.ts are written"
