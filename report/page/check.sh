#!/bin/sh
# Type-checks the page's scripts and runs their unit tests. Needs node and npm; called by continuous integration.
# `node tests/browser.mjs DIRECTORY` then drives whole pages in Chromium.
set -eu
cd "$(dirname "$0")"
[ -d node_modules ] || npm install --no-audit --no-fund --no-package-lock
npx --no-install tsc --project jsconfig.json
node --test tests/*.test.mjs
