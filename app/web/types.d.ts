// The types of what the page holds, known to every module. Browsers never see this file.

type Box = { page: number; x: number; y: number; width: number; height: number; confidence?: number }; // in percent of the page
type Passage = { page: number | null; boxes?: Box[]; heading_path: string[]; start: number; end: number; text: string };
type Found = { start: number; text: string; page: number; boxes: Box[] }; // words in a document
type Citation = {
  marker: number; document_id: string; title: string; source: string; chunk_id: string; page: number | null;
  boxes?: Box[]; heading_path: string[]; start: number; end: number; text: string; score: number; revision?: number;
  since?: "changed" | "deleted"; passages?: Passage[];
  outside?: { server: string; function: string; arguments: string; called_at: string };
};
type Source = { citation: Citation; cited: boolean };
type Options = { mode: string; document_ids: string[] | null; filter?: Record<string, unknown> | null };
type Rating = { rating: "up" | "down"; reason: string | null; comment: string };
type Note = { text: string; label: string; bad?: boolean; act?: () => void };
type ToolUse = { call_id: string; name: string; arguments: any; text?: string; sources?: number };
type Correction = { reason: string; withdrawn: string };
type Turn = {
  key: string; runId: string | null; question: string; options: Options; state: "working" | "over"; waiting: string;
  step: string; text: string; cited: Citation[]; read: Citation[]; steps: string[]; tools: ToolUse[];
  corrections: Correction[]; restarted: string; verification: any; done: any; error: any; note: Note | null;
  feedback: Rating | null; stopping: boolean;
};
type SavedTurn = {
  run_id: string; question: string; mode: string; document_ids: string[] | null; filter?: Record<string, unknown> | null; state: string; ended: any; sources: Citation[];
  steps: { node: string }[]; corrections: Correction[]; tools?: ToolUse[]; feedback: Rating | null;
};
type ThreadIdentity = { id: string | null; workspace: string | null };
type Thread = {
  id: string | null; identity: ThreadIdentity; title: string; turns: Turn[]; earlier: string | null; loading: boolean;
  trouble: string;
};
type ThreadEntry = { thread_id: string; title: string; updated_at: string; turns: number; running: string | null; outdated?: boolean };
/** A document that a newer one may replace. */
type Twin = LibraryDocument & { newer: string };
type LibraryDocument = {
  id: string; title: string; source: string; media_type: string; pages: number | null; characters: number;
  chunks: number; to_embed: number; updated_at: string; groups: string[] | null;
  unread?: { kind: string; number: number; where: string }[];
};
type Key = {
  key_id: string; name: string; rights: string[]; workspaces: string[] | null; groups: string[] | null;
  limits: { requests_per_minute: number | null; runs: number | null; tokens_per_day: number | null; dollars_per_day: number | null; max_documents: number | null; max_stored_mb: number | null };
  created_at: string; expires_at: string | null; revoked_at: string | null; last_used_at: string | null;
};
type Scalar = string | number | boolean;
type Library = {
  all: number; total: number; folder: string; folders: { path: string; documents: number }[];
  choices: { key: string; value: Scalar; documents: number }[]; next: number | null;
};
// What the library shows: documents with these words, in this folder, with one of these values of each key. `root` is what
// all documents are in.
type View = { words: string; folder: string; root: string; sort: string; values: Record<string, Scalar[]> };
type Assistant = {
  assistant_id: string; version: number; name: string; description: string; mode: string; instructions: string | null;
  document_ids: string[] | null; filter: Record<string, unknown> | null; length: string | null; language: string | null;
  models: object | null; metadata: object; groups: string[];
};
type ModeFacts = { name: string; verifies: boolean; dollars: number | null; most_dollars: number | null };
type Ingestion = {
  ingestion_id: string; source: string; state: string; accepted_at: string; ended_at: string | null; report: any;
  progress?: { stage: string; done: number; total: number | null };
};
type Upload = { key: number; name: string; share: number; error: string };
type Evidence = { turn: string; marker: number; nth?: number } | { document: string; page: number; item?: LibraryDocument };
type Tip = { anchor: Element; title: string; text: string };
type State = {
  caller: any; signedOut: boolean; trouble: string; status: string; offline: boolean; workspace: string | null;
  workspaces: { id: string; documents: number; threads: number }[]; modes: string[]; mode: string;
  assistants: Assistant[]; edited: { item: Assistant | null } | null; hasModel: boolean;
  draft: string; threads: ThreadEntry[]; threadsNext: string | null; search: string; thread: Thread | null;
  documents: LibraryDocument[] | null; library: Library | null; view: View; chosen: string[]; named: LibraryDocument[];
  only: { filter: Record<string, unknown>; name: string; documents: number | null; view: View | null } | null; ingestions: Ingestion[]; uploads: Upload[]; dismissed: string[];
  added: string[]; twins: Twin[];
  evidence: Evidence | null; wide: boolean; tip: Tip | null; pane: "" | "left"; leftTab: "conversations" | "library";
};
