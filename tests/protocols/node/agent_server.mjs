// Asks through LangGraph's client, and prints what it made of the answers as JSON.
import { Client } from "@langchain/langgraph-sdk";

const [apiUrl, question, followUp] = process.argv.slice(2);
const client = new Client({ apiUrl, apiKey: null, callerOptions: { maxRetries: 0 } });
const say = (content) => ({ messages: [{ type: "human", content, id: crypto.randomUUID() }] });

const assistants = (await client.assistants.search()).map((assistant) => assistant.name);
const thread = (await client.threads.create({ metadata: { team: "node" } })).thread_id;
const values = await client.runs.wait(thread, "standard", { input: say(question) });
let created, last;
let streamed = "";
const options = {
  input: say(followUp),
  streamMode: ["values", "messages-tuple"],
  streamResumable: true,
  onRunCreated: (run) => (created = run),
};
for await (const { event, data } of client.runs.stream(thread, "standard", options)) {
  if (event === "messages") streamed += data[0].content;
  if (event === "values") last = data;
}
let joined;
const again = { streamMode: ["values"], lastEventId: "-1" };
for await (const { event, data } of client.runs.joinStream(thread, created.run_id, again)) {
  if (event === "values") joined = data;
}
const state = (await client.threads.getState(thread)).values;
const history = await client.threads.getHistory(thread, { limit: 100 });
const messages = [history.at(-1), history[0]].map((each) => each.values.messages.length);
const refused = await client.runs.get(thread, "none").catch((error) => error);
// The client made up the id of its question, which a later reader does not know.
const forget = (values) => {
  const kept = structuredClone(values);
  kept.messages.forEach((message) => message.type === "human" && delete message.id);
  return kept;
};
console.log(
  JSON.stringify({
    assistants,
    thread,
    values,
    created: { ...created, thread_id: created.thread_id.split("/")[0] },
    streamed,
    last: forget(last),
    joined: forget(joined),
    state: forget(state),
    messages,
    refused: refused.message,
  }),
);
