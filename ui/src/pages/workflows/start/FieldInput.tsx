import type { Field } from './fields';
import { ListInput } from './ListInput';
import { ObjectInput } from './ObjectInput';
import { SimpleField } from './SimpleField';
import type { Draft, Drafts } from './values';

export type FieldProps = {
  field: Field;
  path: string;
  draft: Draft;
  onChange: (draft: Draft) => void;
};

export function FieldInput({ field, path, draft, onChange }: FieldProps) {
  if (field.kind === 'object') {
    return <ObjectInput field={field} path={path} draft={draft as Drafts} onChange={onChange} />;
  }
  if (field.kind === 'list') {
    return <ListInput field={field} path={path} draft={draft as string[]} onChange={onChange} />;
  }
  return <SimpleField field={field} path={path} draft={draft as string} onChange={onChange} />;
}
