// What a conversation is made of. These records are what IndexedDB and exported files hold.

export type Role = "user" | "assistant";
export type MessageState = "streaming" | "done" | "stopped" | "interrupted" | "failed";

// A token of an answer. `drafter`: who proposed it; null = the target itself. `top`: its best alternatives.
export interface TokenInfo {
  text: string;
  drafter: string | null;
  bytes?: number[]; // only of tokens that are not whole characters
  logprob?: number;
  top?: [text: string, logprob: number][];
}

// A step of the target: a draft of `drafted` tokens of which `accepted` were right, and then one token of its own.
export interface StepInfo {
  drafter: string | null;
  drafted: number;
  accepted: number;
  ms: number;
  rejected: string[]; // text of the first wrong tokens
}

export interface ToolCall {
  name: string;
  arguments: string;
}

export interface Timings {
  promptTokens: number;
  cachedTokens: number;
  promptMs: number;
  generatedTokens: number;
  generateMs: number;
  tokensPerSecond: number;
  drafted: number;
  accepted: number;
  speedUp: number;
}

// What a request may choose; undefined = the server's default.
export interface Settings {
  temperature?: number;
  top_p?: number;
  top_k?: number;
  min_p?: number;
  repeat_penalty?: number;
  max_tokens?: number;
  seed?: number;
  stop?: string[];
  schema?: string; // JSON schema as text
  tools?: string; // list of tools as JSON text
}

export interface Speculation {
  mode: "auto" | "off" | "pick";
  drafters: string[]; // for "pick"
}

// An image of a question, as a data: URL.
export interface Image {
  name: string;
  url: string;
}

export type AnswerPart = "reasoning" | "content" | "toolCalls" | "tokens" | "finish";

// What came of asking the same question again, with the same speculation and with the other choice.
export interface Proof {
  state: "running" | "same" | "different" | "failed";
  tokens?: number; // "same": of the answer
  part?: AnswerPart; // "different": the first part that differs, and where
  at?: number;
  speculation?: Speculation["mode"]; // "different", "failed": with which choice
  why?: string; // "failed"
}

export interface Message {
  id: string;
  conversation: string;
  parent: string | null;
  role: Role;
  content: string;
  created: number; // milliseconds since the epoch
  updated: number;
  state: MessageState;
  images?: Image[]; // of questions
  // Of answers:
  reasoning?: string;
  toolCalls?: ToolCall[];
  tokens?: TokenInfo[];
  steps?: StepInfo[];
  timings?: Timings;
  firstTokenMs?: number; // as the browser saw it
  seed?: number;
  finish?: string; // OpenAI's finish_reason
  totalTokens?: number; // of prompt and answer
  error?: string;
  // What was asked for, so that it can be asked again:
  settings?: Settings;
  speculation?: Speculation;
  system?: string;
  details?: boolean; // probabilities and alternatives
  model?: string; // which answered
  build?: string;
  proof?: Proof; // of "same seed, same text"
  waiting?: { read: number; total: number } | { queued: number }; // while it streams: tokens of the prompt; busy slots
}

export interface Conversation {
  id: string;
  title: string;
  created: number;
  updated: number;
  system: string;
  selected: Record<string, string>; // from a message (or "" for the beginning) to the one of its replies that is shown
}
