import { Plus, X } from 'lucide-react';
import { useContext, useId } from 'react';
import { Button } from '../../../components/basics';
import { FormState } from './FormState';
import type { Field } from './fields';
import { SimpleInput } from './SimpleInput';
import { type Draft, type Drafts, join } from './values';

type FieldProps = { field: Field; place: string; draft: Draft; onChange: (draft: Draft) => void };

export function FieldInput({ field, place, draft, onChange }: FieldProps) {
  if (field.kind === 'object') {
    return <ObjectInput field={field} place={place} draft={draft as Drafts} onChange={onChange} />;
  }
  if (field.kind === 'list') {
    return <ListInput field={field} place={place} draft={draft as string[]} onChange={onChange} />;
  }
  return <SimpleField field={field} place={place} draft={draft as string} onChange={onChange} />;
}

function SimpleField({ field, place, draft, onChange }: FieldProps & { draft: string }) {
  const id = useId();
  const error = useContext(FormState)[place];
  const help = [field.description, field.hints.join(', ')].filter(Boolean);
  const described = [help.length ? `${id}-help` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ');
  return (
    <div className="field">
      <label htmlFor={id}>
        <FieldName field={field} />
      </label>
      <SimpleInput
        id={id}
        field={field}
        draft={draft}
        onChange={onChange}
        isWrong={error !== undefined}
        describedBy={described || undefined}
      />
      {help.length > 0 && (
        <span id={`${id}-help`} className="faint">
          {help.join(' · ')}
        </span>
      )}
      <FieldError id={`${id}-error`} text={error} />
    </div>
  );
}

function FieldName({ field }: { field: Field }) {
  return (
    <>
      <span className="st-name">{field.label}</span>
      {field.label !== field.key && <code className="faint"> {field.key}</code>}
      {field.required && (
        <span className="st-required" title="required">
          {' '}
          required
        </span>
      )}
    </>
  );
}

function FieldError({ id, text }: { id: string; text: string | undefined }) {
  return text ? (
    <span id={id} className="field-error">
      {text}
    </span>
  ) : null;
}

function ObjectInput({ field, place, draft, onChange }: FieldProps & { draft: Drafts }) {
  const id = useId();
  const error = useContext(FormState)[place];
  return (
    <fieldset className="st-object" aria-describedby={error ? id : undefined}>
      <legend>
        <FieldName field={field} />
      </legend>
      {field.description && <p className="faint">{field.description}</p>}
      <FieldError id={id} text={error} />
      <FieldInputs fields={field.fields} place={place} drafts={draft} onChange={onChange} />
    </fieldset>
  );
}

type ManyProps = { fields: Field[]; place?: string; drafts: Drafts; onChange: (drafts: Drafts) => void };

export function FieldInputs({ fields, place = '', drafts, onChange }: ManyProps) {
  const extra = Object.keys(drafts.extra);
  return (
    <>
      {fields.map((field) => (
        <FieldInput
          key={field.key}
          field={field}
          place={join(place, field.key)}
          draft={drafts.values[field.key] ?? ''}
          onChange={(draft) => onChange({ ...drafts, values: { ...drafts.values, [field.key]: draft } })}
        />
      ))}
      {extra.length > 0 && <p className="faint">Also sent, as the JSON has it: {extra.join(', ')}</p>}
    </>
  );
}

function ListInput({ field, place, draft, onChange }: FieldProps & { draft: string[] }) {
  const id = useId();
  const errors = useContext(FormState);
  const { item } = field;
  if (!item) return null;
  const help = [field.description, field.hints.join(', '), item.hints.join(', ')].filter(Boolean);
  return (
    <fieldset className="st-list" aria-describedby={errors[place] ? id : undefined}>
      <legend>
        <FieldName field={field} />
      </legend>
      {help.length > 0 && <p className="faint">{help.join(' · ')}</p>}
      {draft.map((text, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the items are what stands in their places
        <div key={index} className="st-item">
          <SimpleInput
            field={item}
            draft={text}
            label={`${field.label}, item ${index + 1}`}
            isWrong={errors[join(place, index)] !== undefined}
            describedBy={errors[join(place, index)] ? `${id}-${index}` : undefined}
            onChange={(next) => onChange(draft.map((each, n) => (n === index ? next : each)))}
          />
          <Button
            kind="quiet"
            icon={X}
            aria-label={`Remove item ${index + 1} of ${field.label}`}
            onClick={() => onChange(draft.filter((_, n) => n !== index))}
          />
          <FieldError id={`${id}-${index}`} text={errors[join(place, index)]} />
        </div>
      ))}
      <FieldError id={id} text={errors[place]} />
      <Button icon={Plus} onClick={() => onChange([...draft, item.kind === 'boolean' ? 'false' : ''])}>
        Add
      </Button>
    </fieldset>
  );
}
