#!/bin/sh
# Type-checks the page's scripts and their tests. Needs node and npm; called by continuous integration.
set -eu
cd "$(dirname "$0")"
[ -d node_modules ] || npm install --no-audit --no-fund --no-package-lock
npx --no-install tsc --project jsconfig.json
