import { Plus, X } from 'lucide-react';
import { useContext, useId } from 'react';
import { Button } from '../../../components/Button';
import { FieldError } from './FieldError';
import type { FieldProps } from './FieldInput';
import { FieldName } from './FieldName';
import { FieldErrorsContext } from './fieldErrors';
import { SimpleInput } from './SimpleInput';
import { join } from './values';

export function ListInput({ field, path, draft, onChange }: FieldProps & { draft: string[] }) {
  const id = useId();
  const errors = useContext(FieldErrorsContext);
  const { item } = field;
  if (!item) return null;
  const help = [field.description, field.hints.join(', '), item.hints.join(', ')].filter(Boolean);
  return (
    <fieldset className="st-list" aria-describedby={errors[path] ? id : undefined}>
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
            isWrong={errors[join(path, index)] !== undefined}
            describedBy={errors[join(path, index)] ? `${id}-${index}` : undefined}
            onChange={(next) => onChange(draft.map((before, n) => (n === index ? next : before)))}
          />
          <Button
            kind="quiet"
            icon={X}
            aria-label={`Remove item ${index + 1} of ${field.label}`}
            onClick={() => onChange(draft.filter((_, n) => n !== index))}
          />
          <FieldError id={`${id}-${index}`} text={errors[join(path, index)]} />
        </div>
      ))}
      <FieldError id={id} text={errors[path]} />
      <Button
        icon={Plus}
        onClick={() => onChange([...draft, item.kind === 'boolean' ? 'false' : ''])}
      >
        Add
      </Button>
    </fieldset>
  );
}
