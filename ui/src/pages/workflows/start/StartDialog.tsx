import { useQuery } from '@tanstack/react-query';
import { Play } from 'lucide-react';
import { type FormEvent, useEffect, useId, useRef } from 'react';
import { getWorkflow, type Workflow } from '../../../api/calls';
import { Button, ErrorBox, Loaded } from '../../../components/basics';
import { Dialog } from '../../../components/dialog';
import { FieldInputs } from './FieldInput';
import { FormState } from './FormState';
import { LabelInputs } from './LabelInputs';
import { useStartForm } from './useStartForm';
import './start.css';

type StartProps = { name: string; version?: number | undefined; onClose: () => void };

/** Starts a version of a workflow; the newest if none is named. */
export function StartDialog({ name, version, onClose }: StartProps) {
  const tag = version ? String(version) : undefined;
  const found = useQuery({ queryKey: ['workflows', 'one', name, tag], queryFn: () => getWorkflow(name, tag) });
  return (
    <Dialog title={`Start ${name}${found.data ? `@${found.data.version}` : ''}`} onClose={onClose}>
      <Loaded query={found}>
        {(workflow) => <StartForm key={workflow.version} workflow={workflow} onClose={onClose} />}
      </Loaded>
    </Dialog>
  );
}

function StartForm({ workflow, onClose }: { workflow: Workflow; onClose: () => void }) {
  const form = useStartForm(workflow);
  const element = useRef<HTMLFormElement>(null);
  const wrong = Object.keys(form.errors).length;
  useEffect(() => {
    if (Object.keys(form.errors).length || form.jsonError)
      element.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
  }, [form.errors, form.jsonError]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    form.send();
  };
  return (
    <form ref={element} className="st-form" noValidate onSubmit={submit}>
      {form.fields && <Modes mode={form.mode} onChoose={form.choose} />}
      {form.mode === 'form' && form.fields ? (
        <FormState.Provider value={form.errors}>
          <FieldInputs fields={form.fields} drafts={form.drafts} onChange={form.setDrafts} />
        </FormState.Provider>
      ) : (
        <RawInput text={form.text} error={form.jsonError} hasSchema={form.fields !== null} onChange={form.setText} />
      )}
      <LabelInputs labels={form.labels} onChange={form.setLabels} />
      {wrong > 0 && (
        <p className="field-error" role="alert">
          {wrong === 1 ? 'One field needs a change' : `${wrong} fields need a change`}
        </p>
      )}
      {form.refusal && <ErrorBox error={form.refusal} />}
      <footer className="dialog-actions">
        <Button onClick={onClose}>Back</Button>
        <Button kind="primary" type="submit" icon={Play} busy={form.isSending}>
          Start
        </Button>
      </footer>
    </form>
  );
}

const MODES = { form: 'Form', json: 'JSON' } as const;

function Modes({ mode, onChoose }: { mode: 'form' | 'json'; onChoose: (mode: 'form' | 'json') => void }) {
  return (
    <fieldset className="st-modes">
      <legend className="visually-hidden">How to give the input</legend>
      {(['form', 'json'] as const).map((each) => (
        <button key={each} type="button" aria-pressed={mode === each} onClick={() => onChoose(each)}>
          {MODES[each]}
        </button>
      ))}
    </fieldset>
  );
}

type RawProps = { text: string; error: string | null; hasSchema: boolean; onChange: (text: string) => void };

function RawInput({ text, error, hasSchema, onChange }: RawProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>
        <span className="st-name">Input</span>
      </label>
      <textarea
        id={id}
        className="st-raw"
        spellCheck={false}
        rows={Math.min(22, Math.max(6, text.split('\n').length + 1))}
        value={text}
        aria-invalid={error !== null}
        aria-describedby={`${id}-help`}
        onChange={(event) => onChange(event.target.value)}
      />
      <span id={`${id}-help`} className={error ? 'field-error' : 'faint'}>
        {error ?? (hasSchema ? 'A JSON object' : 'A JSON object; the workflow has no input_schema to make a form from')}
      </span>
    </div>
  );
}
