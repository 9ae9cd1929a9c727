// Asks through the AI SDK, and prints what it made of the answers as JSON.
import { DefaultChatTransport, readUIMessageStream } from "ai";

const [address, question, followUp, slow, endless] = process.argv.slice(2);
const transport = new DefaultChatTransport({ api: `${address}/api/ui/chat` });
const say = (text) => ({ id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] });

async function read(stream) {
  let last;
  for await (const message of readUIMessageStream({ stream })) last = message;
  return last;
}

const send = (chatId, messages, body, abortSignal) =>
  transport.sendMessages({ chatId, messages, body, abortSignal, trigger: "submit-message" });

// A client that is gone after the first part, and what it finds when it comes back.
async function leave(chatId, text, body) {
  const leaving = new AbortController();
  const reader = (await send(chatId, [say(text)], body, leaving.signal)).getReader();
  await reader.read();
  leaving.abort();
  return transport.reconnectToStream({ chatId });
}

const first = [say(question)];
const answer = await read(await send("a", first));
const next = await read(await send("a", [...first, answer, say(followUp)]));
const resumed = await leave("b", slow);
const found = await read(resumed);
const after = await read(await send("b", [say(slow), found, say(followUp)]));
const nothing = await transport.reconnectToStream({ chatId: "b" });
const refused = await send("c", first, { mode: "none" }).catch((error) => error.message);
await leave("d", endless, { on_disconnect: "cancel" });
console.log(JSON.stringify({ answer, next, found, after, nothing, refused }));
process.exit();
