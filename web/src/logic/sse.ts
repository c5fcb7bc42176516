// Server-sent events out of a stream of bytes, which may be cut anywhere.

export class EventSplitter {
  private rest = "";
  private readonly decoder = new TextDecoder();

  // The data of each event that is complete now.
  push(bytes: Uint8Array): string[] {
    this.rest += this.decoder.decode(bytes, { stream: true });
    const events = this.rest.split(/\r?\n\r?\n/);
    this.rest = events.pop()!;
    return events.map(dataOf).filter((data): data is string => data !== null);
  }

  // Whether the stream ended inside an event.
  get cut(): boolean {
    return this.rest.trim() !== "";
  }
}

function dataOf(event: string): string | null {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
  return lines.length === 0 ? null : lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
}
