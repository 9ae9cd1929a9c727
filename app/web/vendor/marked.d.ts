// What the pages use of marked: its lexer.
export class Marked {
  constructor(...options: any[]);
  lexer(text: string): any[];
}
