// Asks through OpenAI's client, and prints what it made of the answers as JSON.
import OpenAI from "openai";

const [address, question, followUp] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: "none", maxRetries: 0 });

const completion = await client.chat.completions.create({
  model: "standard",
  messages: [{ role: "user", content: question }],
});
let streamed = "";
const chunks = await client.chat.completions.create({
  model: "standard",
  messages: [{ role: "user", content: question }],
  stream: true,
});
for await (const chunk of chunks) streamed += chunk.choices[0].delta.content ?? "";
const response = await client.responses.create({ model: "standard", input: question });
// The client puts the pieces together itself, and complains where one is missing.
const next = await client.responses
  .stream({ model: "standard", input: followUp, previous_response_id: response.id })
  .finalResponse();
const refused = await client.responses.create({ model: "none", input: question }).catch((error) => error);
console.log(
  JSON.stringify({
    completion,
    streamed,
    response: { text: response.output_text, ...response },
    next: next.output_text,
    refused: [refused.constructor.name, refused.message],
  }),
);
