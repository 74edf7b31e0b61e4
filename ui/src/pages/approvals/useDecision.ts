import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { type Approval, type ApprovalDecision, decideApproval } from '../../api/calls';
import { messageOf, Problem } from '../../api/problem';
import { useSession } from '../../api/useSession';
import { toast } from '../../components/toast';
import { withLocalTimes } from '../../time';
import { fieldsOf } from '../workflows/start/fields';
import { errorsByField } from '../workflows/start/serverErrors';
import { draftsOf, type Errors, inputOf } from '../workflows/start/values';

type Decision = ApprovalDecision['decision'];

const DONE_TEXTS: Record<Decision, string> = { approved: 'Approved', rejected: 'Rejected' };

/** A decision as it is filled in, and sending it. */
export function useDecision(approval: Approval) {
  const { execution_id: executionId, node_id: nodeId, form, title } = approval;
  const queries = useQueryClient();
  const { key } = useSession();
  const schemaText = JSON.stringify(form);
  // The list is fetched again and again, and its schemas are new objects each time.
  const fields = useMemo(() => fieldsOf(JSON.parse(schemaText), undefined), [schemaText]);
  const asksForJson = form !== null && fields === null;
  const [drafts, setDrafts] = useState(() => draftsOf(fields ?? []));
  const [json, setJson] = useState('{}');
  const [comment, setComment] = useState('');
  const [by, setBy] = useState('');
  const [errors, setErrors] = useState<Errors>({});
  const sending = useMutation({
    mutationFn: (decision: ApprovalDecision) => decideApproval(executionId, nodeId, decision),
    onSuccess: ({ decision, is_final }) => {
      const rest = is_final ? '' : ' More people must approve.';
      toast(`${DONE_TEXTS[decision]}: ${title}.${rest}`);
    },
    onError: (error) => {
      if (!(error instanceof Problem)) return;
      // The form goes away with the approval, so what was decided stays in sight elsewhere.
      if (error.status === 409) toast(`${title}: ${withLocalTimes(messageOf(error))}`, 'failed');
      setErrors(placedErrors(error));
    },
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: ['approvals'] });
      void queries.invalidateQueries({ queryKey: ['execution', executionId] });
    },
  });
  const placedErrors = (error: Problem): Errors => {
    const { errors: byField } = errorsByField(error, fields ?? [], 'form');
    for (const { path, message } of error.problems) {
      if (path === 'comment' || (asksForJson && path.startsWith('form'))) {
        const name = path === 'comment' ? 'comment' : 'form';
        byField[name] = byField[name] ? `${byField[name]}; ${message}` : message;
      }
    }
    return byField;
  };
  const decide = (decision: Decision) => {
    sending.reset();
    const read = decision === 'approved' ? readForm() : { value: undefined, errors: {} };
    const isCommentNeeded =
      approval.comment === 'always' ||
      (approval.comment === 'on_reject' && decision === 'rejected');
    const found: Errors = { ...read.errors };
    if (isCommentNeeded && !comment.trim()) found.comment = 'A comment is needed';
    setErrors(found);
    if (Object.keys(found).length) return;
    sending.mutate({
      decision,
      ...(read.value === undefined ? {} : { form: read.value }),
      ...(comment.trim() ? { comment } : {}),
      ...(key || !by.trim() ? {} : { by: by.trim() }),
    });
  };
  const readForm = (): { value: unknown; errors: Errors } => {
    if (fields) {
      const { input, errors: wrong } = inputOf(fields, drafts);
      return { value: input, errors: wrong };
    }
    if (!asksForJson) return { value: undefined, errors: {} };
    try {
      return { value: JSON.parse(json), errors: {} };
    } catch (error) {
      return { value: undefined, errors: { form: `This isn't JSON: ${messageOf(error)}` } };
    }
  };
  const { error } = sending;
  const isAllPlaced =
    error instanceof Problem &&
    error.problems.length > 0 &&
    Object.keys(placedErrors(error)).length >= new Set(error.problems.map(({ path }) => path)).size;
  return {
    fields,
    asksForJson,
    drafts,
    setDrafts,
    json,
    setJson,
    comment,
    setComment,
    by,
    setBy,
    errors,
    decide,
    isSending: sending.isPending,
    /** The server's error, if not all of it is shown at fields. */
    refusal: isAllPlaced ? null : error,
  };
}
