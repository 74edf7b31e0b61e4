import { useContext, useId } from 'react';
import { FieldError } from './FieldError';
import type { FieldProps } from './FieldInput';
import { FieldInputs } from './FieldInputs';
import { FieldName } from './FieldName';
import { FieldErrorsContext } from './fieldErrors';
import type { Drafts } from './values';

export function ObjectInput({ field, path, draft, onChange }: FieldProps & { draft: Drafts }) {
  const id = useId();
  const error = useContext(FieldErrorsContext)[path];
  return (
    <fieldset className="st-object" aria-describedby={error ? id : undefined}>
      <legend>
        <FieldName field={field} />
      </legend>
      {field.description && <p className="faint">{field.description}</p>}
      <FieldError id={id} text={error} />
      <FieldInputs fields={field.fields} path={path} drafts={draft} onChange={onChange} />
    </fieldset>
  );
}
