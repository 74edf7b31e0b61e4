import type { Field } from './fields';

export function FieldName({ field }: { field: Field }) {
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
