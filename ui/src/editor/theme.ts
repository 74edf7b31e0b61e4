// The colours of the UI for the editor. CSS variables reach into its shadow root.
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--indigo)' },
  { tag: tags.definition(tags.propertyName), color: 'var(--indigo)' },
  { tag: tags.string, color: 'var(--green)' },
  { tag: tags.number, color: 'var(--blue)' },
  { tag: [tags.bool, tags.keyword], color: 'var(--violet)' },
  { tag: [tags.null, tags.comment], color: 'var(--text-3)' },
]);

const surfaces = EditorView.theme({
  '&': {
    height: '100%',
    fontSize: '13px',
    color: 'var(--text)',
    backgroundColor: 'var(--surface)',
  },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55', overflow: 'auto' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-cursor, .cm-dropCursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': {
    backgroundColor: 'var(--surface-2)',
    color: 'var(--text-3)',
    borderRight: '1px solid var(--line)',
  },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--accent-soft) 35%, transparent)' },
  '.cm-activeLineGutter': { backgroundColor: 'var(--accent-soft)', color: 'var(--text)' },
  '.cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground':
    { background: 'color-mix(in srgb, var(--accent) 28%, transparent)' },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': {
    backgroundColor: 'var(--surface-3)',
    outline: '1px solid var(--line-strong)',
  },
  '.cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--red)',
    textDecorationSkipInk: 'none',
    textUnderlineOffset: '3px',
  },
  '.cm-lintRange-warning': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--amber)',
    textUnderlineOffset: '3px',
  },
  '.cm-line-error': { backgroundColor: 'var(--danger-soft)' },
  '.cm-gutter-lint': { width: '14px' },
  '.cm-lint-marker': {
    content: '""',
    width: '8px',
    height: '8px',
    borderRadius: '50%',
    margin: '6px 3px',
  },
  '.cm-lint-marker-error': { backgroundColor: 'var(--red)' },
  '.cm-lint-marker-warning': { backgroundColor: 'var(--amber)' },
  '.cm-tooltip': {
    backgroundColor: 'var(--surface)',
    color: 'var(--text)',
    border: '1px solid var(--line-strong)',
    borderRadius: '8px',
    boxShadow: 'var(--shadow-high)',
    overflow: 'hidden',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', maxHeight: '16em' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '3px 10px' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': {
    background: 'var(--accent)',
    color: 'var(--accent-text)',
  },
  '.cm-completionDetail': { color: 'inherit', opacity: '0.8' },
  '.cm-completionInfo': { maxWidth: '320px', padding: '8px 10px', fontFamily: 'var(--sans)' },
  '.cm-diagnostic': { padding: '6px 10px', maxWidth: '460px', fontFamily: 'var(--sans)' },
  '.cm-diagnostic-error': { borderLeft: '4px solid var(--red)' },
  '.cm-diagnostic-warning': { borderLeft: '4px solid var(--amber)' },
  '.cm-panels': { backgroundColor: 'var(--surface-2)', color: 'var(--text)' },
  '.cm-panels.cm-panels-bottom': { borderTop: '1px solid var(--line)' },
  '.cm-textfield': { backgroundColor: 'var(--surface)', border: '1px solid var(--line-strong)' },
  '.cm-button': {
    backgroundImage: 'none',
    backgroundColor: 'var(--surface)',
    color: 'var(--text)',
  },
  '.cm-searchMatch': { backgroundColor: 'color-mix(in srgb, var(--amber) 32%, transparent)' },
});

export const editorTheme = [surfaces, syntaxHighlighting(colours)];
