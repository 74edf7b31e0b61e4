import { FieldInput } from './FieldInput';
import type { Field } from './fields';
import { type Drafts, join } from './values';

type ManyProps = {
  fields: Field[];
  path?: string;
  drafts: Drafts;
  onChange: (drafts: Drafts) => void;
};

export function FieldInputs({ fields, path = '', drafts, onChange }: ManyProps) {
  const extra = Object.keys(drafts.extra);
  return (
    <>
      {fields.map((field) => (
        <FieldInput
          key={field.key}
          field={field}
          path={join(path, field.key)}
          draft={drafts.values[field.key] ?? ''}
          onChange={(draft) =>
            onChange({ ...drafts, values: { ...drafts.values, [field.key]: draft } })
          }
        />
      ))}
      {extra.length > 0 && (
        <p className="faint">Also sent, as given in the JSON: {extra.join(', ')}</p>
      )}
    </>
  );
}
