import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { submit, submitDocument } from '../../../api/calls';
import { Problem } from '../../../api/problem';
import { toast } from '../../../components/toast';
import { navigate } from '../../../routing/navigation';
import { paths } from '../../../routing/paths';
import { fieldsOf } from './fields';
import { type LabelDraft, labelDraftsOf, labelsFromDrafts } from './labelDrafts';
import { isObject } from './schema';
import { errorsByField } from './serverErrors';
import type { InitialValues, Startable } from './startable';
import { draftsOf, type Errors, inputOf, misfitsOf } from './values';

const pretty = (value: unknown) => JSON.stringify(value, null, 2);

/**
 * The input as fields or as JSON, one at a time. Changing from one to the other takes the input
 * along.
 */
export function useStartForm(workflow: Startable, initial: InitialValues) {
  const { name, version, definition, json } = workflow;
  const queries = useQueryClient();
  const fields = useMemo(() => fieldsOf(definition.input_schema, definition.input), [definition]);
  // An input that the form can't show is edited as JSON.
  const fits = fields !== null && (!initial.input || misfitsOf(fields, initial.input).length === 0);
  const [mode, setMode] = useState<'form' | 'json'>(fits ? 'form' : 'json');
  const [drafts, setDrafts] = useState(() => draftsOf(fields ?? [], initial.input ?? undefined));
  const [text, setText] = useState(() => pretty(initial.input ?? definition.input ?? {}));
  const [labels, setLabels] = useState<LabelDraft[]>(() => labelDraftsOf(initial.labels));
  const [errors, setErrors] = useState<Errors>({});
  const [jsonError, setJsonError] = useState<string | null>(null);
  const sending = useMutation({
    mutationFn: (input: Record<string, unknown>) =>
      json === undefined
        ? submit(`${name}@${version}`, input, labelsFromDrafts(labels))
        : submitDocument(json, input, labelsFromDrafts(labels)),
    onSuccess: ({ execution_id }) => {
      toast(version ? `${name}@${version} started` : `${name} started`);
      void queries.invalidateQueries({ queryKey: ['executions'] });
      navigate(paths.execution(execution_id));
    },
    onError: (error) => {
      if (mode === 'form' && error instanceof Problem) {
        setErrors(errorsByField(error, fields ?? []).errors);
      }
    },
  });
  const parsed = (): Record<string, unknown> | null => {
    try {
      const input: unknown = JSON.parse(text);
      if (isObject(input)) return input;
      setJsonError('The input must be an object, such as {"user_id": 7}');
    } catch (error) {
      setJsonError(`This isn't JSON: ${(error as Error).message}`);
    }
    return null;
  };
  const choose = (next: 'form' | 'json') => {
    if (next === mode || !fields) return;
    setErrors({});
    setJsonError(null);
    sending.reset();
    if (next === 'json') {
      setText(pretty(inputOf(fields, drafts).input));
    } else {
      const input = parsed();
      if (!input) return;
      const misfits = misfitsOf(fields, input);
      if (misfits.length) {
        setJsonError(`The form can't show the value of ${misfits.join(', ')}`);
        return;
      }
      setDrafts(draftsOf(fields, input));
    }
    setMode(next);
  };
  const send = () => {
    sending.reset();
    setErrors({});
    setJsonError(null);
    if (mode === 'json') {
      const input = parsed();
      if (input) sending.mutate(input);
      return;
    }
    const read = inputOf(fields ?? [], drafts);
    if (Object.keys(read.errors).length) setErrors(read.errors);
    else sending.mutate(read.input);
  };
  const isAllPlaced =
    mode === 'form' &&
    sending.error instanceof Problem &&
    errorsByField(sending.error, fields ?? []).isAllPlaced;
  return {
    fields,
    mode,
    choose,
    drafts,
    setDrafts,
    text,
    setText,
    labels,
    setLabels,
    errors,
    jsonError,
    send,
    isSending: sending.isPending,
    /** The server's error, if not all of it is shown at fields. */
    refusal: isAllPlaced ? null : sending.error,
  };
}
