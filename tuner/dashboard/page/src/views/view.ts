// A view fills the page until another one takes its place.
export interface View {
  title: string;
  element: HTMLElement;
  // Asks for what is new. Called once at the start, and when the server tells of something new.
  refresh(): Promise<void>;
  // Asks so often, too: what changes without a new result.
  everyMs?: number;
}
export interface Page { mayChange: boolean; beside: string }
