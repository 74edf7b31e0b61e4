import { setDiagnostics } from '@codemirror/lint';
import { EditorState, Transaction } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { type Ref, useEffect, useImperativeHandle, useRef } from 'react';
import type { Knowledge } from './completions';
import type { Format, Range, TextProblem } from './documentTree';
import { extensions, language, languageOf } from './editorState';

export type CodeEditorHandle = {
  /** Selects this part of the text and scrolls to it. */
  show: (range: Range) => void;
  /** Replaces the whole text; it can be undone. */
  replace: (text: string, format: Format) => void;
};

type CodeEditorProps = {
  handle: Ref<CodeEditorHandle>;
  initialText: string;
  format: Format;
  label: string;
  knowledge: Knowledge;
  problems: readonly TextProblem[];
  onText: (text: string) => void;
  onCursor: (position: number) => void;
};

/**
 * CodeMirror in a shadow root: there it adds its styles by script objects, which the UI's
 * Content-Security-Policy allows, and not as inline styles.
 */
export default function CodeEditor(props: CodeEditorProps) {
  const { handle, initialText, format, label, knowledge, problems } = props;
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  latest.current = props;

  // biome-ignore lint/correctness/useExhaustiveDependencies: made once; later changes go in below
  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
    const listener = EditorView.updateListener.of((update) => {
      if (update.docChanged) latest.current.onText(update.state.doc.toString());
      if (update.docChanged || update.selectionSet) {
        latest.current.onCursor(update.state.selection.main.head);
      }
    });
    const parts = extensions(format, () => latest.current.knowledge, label);
    const editor = new EditorView({
      state: EditorState.create({ doc: initialText, extensions: [...parts, listener] }),
      parent: root,
      root,
    });
    view.current = editor;
    return () => {
      editor.destroy();
      view.current = null;
    };
  }, []);

  useImperativeHandle(handle, () => ({
    show: ({ from, to }) => {
      const editor = view.current;
      if (!editor) return;
      const end = editor.state.doc.length;
      const selection = { anchor: Math.min(from, end), head: Math.min(to, end) };
      editor.dispatch({
        selection,
        effects: EditorView.scrollIntoView(selection.anchor, { y: 'center' }),
      });
      editor.focus();
    },
    replace: (text, nextFormat) => {
      const editor = view.current;
      if (!editor) return;
      editor.dispatch({
        changes: { from: 0, to: editor.state.doc.length, insert: text },
        effects: language.reconfigure(languageOf(nextFormat)),
        annotations: Transaction.userEvent.of('input.replace'),
      });
    },
  }));

  useEffect(() => {
    view.current?.dispatch({ effects: language.reconfigure(languageOf(format)) });
  }, [format]);

  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    const end = editor.state.doc.length;
    const marks = problems
      .filter(({ from }) => from <= end)
      .map((problem) => ({ ...problem, to: Math.min(problem.to, end) }));
    editor.dispatch(setDiagnostics(editor.state, marks));
  }, [problems]);

  return <div ref={host} className="code-editor" data-format={knowledge.format} />;
}
