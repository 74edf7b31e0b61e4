import { useContext, useId } from 'react';
import { FieldError } from './FieldError';
import type { FieldProps } from './FieldInput';
import { FieldName } from './FieldName';
import { FieldErrorsContext } from './fieldErrors';
import { SimpleInput } from './SimpleInput';

export function SimpleField({ field, path, draft, onChange }: FieldProps & { draft: string }) {
  const id = useId();
  const error = useContext(FieldErrorsContext)[path];
  const help = [field.description, field.hints.join(', ')].filter(Boolean);
  const described = [help.length ? `${id}-help` : '', error ? `${id}-error` : '']
    .filter(Boolean)
    .join(' ');
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
