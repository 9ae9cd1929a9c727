// A page that asks with `useChat`, as its documentation has it.
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { useState } from "react";
import { createRoot } from "react-dom/client";

const transport = new DefaultChatTransport({ api: "/api/ui/chat" });

function Part({ part }) {
  if (part.type === "text") return <p>{part.text}</p>;
  if (part.type === "source-url") return <a href={part.url}>{part.title}</a>;
  return null;
}

function Chat() {
  const [question, setQuestion] = useState("");
  const { messages, sendMessage, status, error } = useChat({ transport });
  const ask = (event) => {
    event.preventDefault();
    sendMessage({ text: question });
    setQuestion("");
  };
  return (
    <main>
      {messages.map((message) => (
        <article key={message.id} data-role={message.role}>
          {message.parts.map((part, number) => (
            <Part key={number} part={part} />
          ))}
        </article>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={ask}>
        <input aria-label="Question" value={question} onChange={(event) => setQuestion(event.target.value)} />
        <button disabled={status !== "ready" && status !== "error"}>Ask</button>
      </form>
    </main>
  );
}

createRoot(document.getElementById("root")).render(<Chat />);
