#!/bin/sh
# Builds Agent Chat UI and serves it on port 3000, to be looked at beside a running askgraph:
#
#   git clone https://github.com/langchain-ai/agent-chat-ui
#   sh tests/protocols/agent_chat_ui.sh agent-chat-ui http://127.0.0.1:8000
#
# Last done with its commit fdc87e6 (Next.js 15.5.21). It takes 800 MB, and three minutes on two cores. By hand, not in CI.
set -eu

cd "$1"
export LANGGRAPH_API_URL="$2/langgraph" LANGSMITH_API_KEY="${ASKGRAPH_API_KEY:-none}" NEXT_TELEMETRY_DISABLED=1
export NEXT_PUBLIC_API_URL=http://localhost:3000/api NEXT_PUBLIC_ASSISTANT_ID=standard
# The font would be fetched from Google while it is built.
sed -i '/next\/font/d; /const inter = Inter/,/^});/d; s/ className={inter.className}//' src/app/layout.tsx
npx --yes pnpm@10.5.1 install --frozen-lockfile --ignore-scripts
node_modules/.bin/next build --no-lint
exec node_modules/.bin/next start -p 3000
