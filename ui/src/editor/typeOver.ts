import { EditorView } from '@codemirror/view';

/**
 * Typing over a selection, done here. The browser would keep the style of the replaced text as an
 * inline style, which the UI's Content-Security-Policy refuses with a complaint in the console.
 */
export const typeOver = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { from, to, empty } = view.state.selection.main;
    const text = event.data;
    if (event.inputType !== 'insertText' || text === null || empty || view.composing) return false;
    event.preventDefault();
    const change = () =>
      view.state.update(view.state.replaceSelection(text), { userEvent: 'input' });
    const isHandled = view.state
      .facet(EditorView.inputHandler)
      .some((handle) => handle(view, from, to, text, change));
    if (!isHandled) view.dispatch(change());
    return true;
  },
});
