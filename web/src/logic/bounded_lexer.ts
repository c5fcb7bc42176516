// A markdown parser that counts what a text costs it and gives up in time. The parser alone takes seconds for some shapes of a few
// thousand characters ("[a](" again and again costs the square of their number). No function here has side effects.
import { Lexer, type Token, type TokensList } from "marked";

// What a text may cost: about 0.3 s for the worst of 30,000 shapes that were tried. An answer of 100,000 characters in
// ordinary paragraphs, lists and tables costs about half of it.
export const MAX_WORK = 40_000_000;
const MAX_DEPTH = 24; // of quotes and lists in each other
const MAX_DEFINITIONS = 500; // of link addresses; each run of text looks at all of them
const SPECIAL = /[[\]()<>*_~`\\!&|:@]|www\./g;
const LINES_AT_ONCE = 8; // looking at a line for the beginning of a block is so much cheaper than at a special character


export class TooCostly extends Error {}

export class BoundedLexer extends Lexer {
  work = 0;
  private depth = 0;
  private definitions = 0;

  // A run of text costs its length times the places where the parser may look ahead to its end.
  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    this.spend(src.length * (1 + (src.match(SPECIAL)?.length ?? 0)) + this.definitions * src.length);
    return super.inlineTokens(src, tokens);
  }

  override blockTokens(src: string, tokens?: Token[], lastParagraphClipped?: boolean): Token[];
  override blockTokens(src: string, tokens?: TokensList, lastParagraphClipped?: boolean): TokensList;
  override blockTokens(src: string, tokens: Token[] = [], lastParagraphClipped?: boolean): Token[] {
    this.spend(src.length * (1 + (src.match(/\n/g)?.length ?? 0) / LINES_AT_ONCE));
    if (++this.depth > MAX_DEPTH) throw new TooCostly();
    super.blockTokens(src, tokens, lastParagraphClipped);
    --this.depth;
    this.definitions = Object.keys(this.tokens.links).length;
    if (this.definitions > MAX_DEFINITIONS) throw new TooCostly();
    return tokens;
  }

  private spend(work: number): void {
    this.work += work;
    if (this.work > MAX_WORK) throw new TooCostly();
  }
}

