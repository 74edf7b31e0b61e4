import { Play } from 'lucide-react';
import { type FormEvent, useEffect, useRef } from 'react';
import { Button } from '../../../components/Button';
import { ErrorBox } from '../../../components/ErrorBox';
import { FieldInputs } from './FieldInputs';
import { FieldErrorsContext } from './fieldErrors';
import { InputModes } from './InputModes';
import { LabelInputs } from './LabelInputs';
import { RawJsonInput } from './RawJsonInput';
import type { InitialValues, Startable } from './startable';
import { useStartForm } from './useStartForm';

type FormProps = { workflow: Startable; initial: InitialValues; onClose: () => void };

export function StartForm({ workflow, initial, onClose }: FormProps) {
  const form = useStartForm(workflow, initial);
  const element = useRef<HTMLFormElement>(null);
  const wrong = Object.keys(form.errors).length;
  useEffect(() => {
    if (Object.keys(form.errors).length || form.jsonError) {
      element.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
    }
  }, [form.errors, form.jsonError]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    form.send();
  };
  return (
    <form ref={element} className="st-form" noValidate onSubmit={submit}>
      {form.fields && <InputModes mode={form.mode} onChoose={form.choose} />}
      {form.mode === 'form' && form.fields ? (
        <FieldErrorsContext.Provider value={form.errors}>
          <FieldInputs fields={form.fields} drafts={form.drafts} onChange={form.setDrafts} />
        </FieldErrorsContext.Provider>
      ) : (
        <RawJsonInput
          text={form.text}
          error={form.jsonError}
          hasSchema={form.fields !== null}
          onChange={form.setText}
        />
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
