#!/bin/sh
# Type-checks the scripts of this page and of the live page, which shares some, and runs their unit tests. Needs node and npm; called by continuous integration.
# `node tests/browser.mjs DIRECTORY` then drives whole pages in Chromium.
set -eu
cd "$(dirname "$0")"
[ -d node_modules ] || npm install --no-audit --no-fund --no-package-lock
npx --no-install tsc --project jsconfig.json
npx --no-install tsc --project parallel/jsconfig.json
npx --no-install tsc --project ../../src/endpoints/live/page/jsconfig.json
node --test tests/*.test.mjs
