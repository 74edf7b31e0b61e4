import { useQuery } from '@tanstack/react-query';
import { Play, Save, Undo2 } from 'lucide-react';
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { listWorkers } from '../../api/calls';
import { useMay } from '../../api/useMay';
import { Button } from '../../components/Button';
import { Empty } from '../../components/Empty';
import { ErrorBox } from '../../components/ErrorBox';
import { Loading } from '../../components/Loading';
import { Page } from '../../components/Page';
import type { CodeEditorHandle } from '../../editor/CodeEditor';
import type { Knowledge } from '../../editor/completions';
import { type Format, nodeIdOf, nodeListOf } from '../../editor/documentTree';
import { formatTree } from '../../editor/formats';
import { navigate } from '../../routing/navigation';
import { paths } from '../../routing/paths';
import { StartDialog } from '../workflows/start/StartDialog';
import { readDraft, rememberFormat, writeDraft } from './drafts';
import { FormatSwitch } from './FormatSwitch';
import { ProblemList } from './ProblemList';
import { SaveDialog } from './SaveDialog';
import { schemaQuery, useChecked } from './useChecked';

const CodeEditor = lazy(() => import('../../editor/CodeEditor'));
const WorkflowGraphView = lazy(() =>
  import('../../graph/WorkflowGraphView').then((module) => ({ default: module.WorkflowGraphView })),
);

type EditorProps = { name: string | null; storedText: string; storedFormat: Format };

/** A document, its problems and its graph, side by side. */
export function WorkflowEditor({ name, storedText, storedFormat }: EditorProps) {
  const draft = useMemo(() => readDraft(name), [name]);
  const [text, setText] = useState(draft?.text ?? storedText);
  const [format, setFormat] = useState(draft?.format ?? storedFormat);
  /** What is stored, in the format of the editor. */
  const [base, setBase] = useState(storedText);
  const [position, setPosition] = useState(0);
  const [dialog, setDialog] = useState<'save' | 'run' | null>(null);
  const editor = useRef<CodeEditorHandle>(null);
  const maySave = useMay('operate');
  const maySubmit = useMay('submit');
  const schema = useQuery(schemaQuery());
  const workers = useQuery({ queryKey: ['workers'], queryFn: listWorkers, staleTime: 30_000 });
  const checked = useChecked(text, format, schema.data ?? null);
  const { lastRoot, problems } = checked;
  const isChanged = text !== base;
  useEffect(() => {
    writeDraft(name, isChanged ? { text, format } : null);
  }, [name, text, format, isChanged]);

  const handlers = useMemo(
    () => [...new Set((workers.data?.items ?? []).flatMap((worker) => worker.handlers ?? []))],
    [workers.data],
  );
  const knowledge = useMemo<Knowledge>(
    () => ({ format, schema: schema.data ?? null, handlers, root: lastRoot }),
    [format, schema.data, handlers, lastRoot],
  );
  const places = useMemo(() => {
    const nodes = lastRoot ? (nodeListOf(lastRoot)?.items ?? []) : [];
    return nodes.flatMap((node) => {
      const id = nodeIdOf(node);
      return id ? [{ id, from: node.from, to: node.to }] : [];
    });
  }, [lastRoot]);
  const selected = places.find(({ from, to }) => from <= position && position <= to)?.id ?? null;
  const select = useCallback(
    (nodeId: string | null) => {
      const place = places.find(({ id }) => id === nodeId);
      if (place) editor.current?.show({ from: place.from, to: place.from });
    },
    [places],
  );

  const choose = (next: Format) => {
    const { root } = checked;
    if (next === format || !root) return;
    const nextText = formatTree(root, next);
    rememberFormat(next);
    setFormat(next);
    if (!isChanged) setBase(nextText);
    setText(nextText); // also if the editor is still being loaded
    editor.current?.replace(nextText, next);
  };
  const discard = () => {
    setFormat(storedFormat);
    setBase(storedText);
    setText(storedText);
    editor.current?.replace(storedText, storedFormat);
  };
  const saved = (savedName: string) => {
    setBase(text);
    setDialog(null);
    if (savedName !== name) {
      writeDraft(name, null);
      navigate(paths.editWorkflow(savedName), { replace: true });
    }
  };
  return (
    <Page
      title={name ? `Edit ${name}` : 'New workflow'}
      actions={
        <>
          {isChanged && name && (
            <Button kind="quiet" icon={Undo2} onClick={discard}>
              Discard changes
            </Button>
          )}
          <FormatSwitch format={format} disabled={!checked.root} onChoose={choose} />
          {maySubmit && (
            <Button
              icon={Play}
              disabled={!checked.isValid}
              title={isChanged ? 'Runs this text without saving it' : 'Runs the stored version'}
              onClick={() => setDialog('run')}
            >
              Run
            </Button>
          )}
          {maySave && (
            <Button
              kind="primary"
              icon={Save}
              disabled={!checked.isValid || (!isChanged && name !== null)}
              onClick={() => setDialog('save')}
            >
              Save
            </Button>
          )}
        </>
      }
    >
      {checked.error && <ErrorBox error={checked.error} />}
      <div className="ed">
        <section className="ed-text" aria-label="Text">
          <Suspense fallback={<Loading what="Loading the editor" />}>
            <CodeEditor
              handle={editor}
              initialText={text}
              format={format}
              label="Workflow document"
              knowledge={knowledge}
              problems={problems}
              onText={setText}
              onCursor={setPosition}
            />
          </Suspense>
          <ProblemList
            text={text}
            problems={problems}
            isChecking={checked.isChecking}
            onShow={(range) => editor.current?.show(range)}
          />
        </section>
        <section className="ed-graph" aria-label="Graph">
          {checked.graph && checked.graph.nodes.length > 0 ? (
            <Suspense fallback={<Loading />}>
              <WorkflowGraphView graph={checked.graph} selected={selected} onSelect={select} />
            </Suspense>
          ) : (
            <Empty title="The graph appears here">Add nodes, each with an id and a handler.</Empty>
          )}
        </section>
      </div>
      {dialog === 'save' && checked.json !== null && (
        <SaveDialog
          json={checked.json}
          name={checked.name ?? ''}
          onSaved={saved}
          onClose={() => setDialog(null)}
        />
      )}
      {dialog === 'run' && checked.json !== null && (
        <StartDialog
          name={name ?? checked.name ?? 'workflow'}
          {...(isChanged || !name ? { json: checked.json } : {})}
          onClose={() => setDialog(null)}
        />
      )}
    </Page>
  );
}
