// Unsaved texts, kept in the tab: a look at another page, or a reload, loses nothing.
import type { Format } from '../../editor/documentTree';

export type Draft = { text: string; format: Format };

const FORMAT_KEY = 'penstock.editor.format';

function keyOf(name: string | null): string {
  return `penstock.draft:${name ?? ''}`;
}

export function readDraft(name: string | null): Draft | null {
  try {
    const draft = JSON.parse(sessionStorage.getItem(keyOf(name)) ?? 'null');
    return typeof draft?.text === 'string' ? draft : null;
  } catch {
    return null;
  }
}

export function writeDraft(name: string | null, draft: Draft | null): void {
  try {
    if (draft) sessionStorage.setItem(keyOf(name), JSON.stringify(draft));
    else sessionStorage.removeItem(keyOf(name));
  } catch {
    // the tab's storage is full: the text is still in the editor
  }
}

export function preferredFormat(): Format {
  return localStorage.getItem(FORMAT_KEY) === 'yaml' ? 'yaml' : 'json';
}

export function rememberFormat(format: Format): void {
  localStorage.setItem(FORMAT_KEY, format);
}
