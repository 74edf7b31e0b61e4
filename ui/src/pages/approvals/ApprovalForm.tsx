import { Check, X } from 'lucide-react';
import { type FormEvent, useEffect, useRef } from 'react';
import type { Approval } from '../../api/calls';
import { useSession } from '../../api/useSession';
import { Button } from '../../components/Button';
import { ErrorBox } from '../../components/ErrorBox';
import { JsonView } from '../../components/JsonView';
import { TextField } from '../../components/TextField';
import { FieldInputs } from '../workflows/start/FieldInputs';
import { FieldErrorsContext } from '../workflows/start/fieldErrors';
import { useDecision } from './useDecision';
import '../workflows/start/start.css';
import './approvals.css';

const COMMENTS: Record<string, string> = {
  always: 'Needed for either decision',
  on_reject: 'Needed to reject',
};

/** What is to be decided, the fields of its form, a comment, and the two decisions. */
export function ApprovalForm({ approval }: { approval: Approval }) {
  const decision = useDecision(approval);
  const { key } = useSession();
  const element = useRef<HTMLFormElement>(null);
  const { errors, fields } = decision;
  useEffect(() => {
    if (Object.keys(errors).length === 0) return;
    element.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
  }, [errors]);
  const approve = (event: FormEvent) => {
    event.preventDefault();
    decision.decide('approved');
  };
  return (
    <form ref={element} className="approval-form" noValidate onSubmit={approve}>
      <ApprovalText text={approval.text} />
      {approval.may_decide && (
        <>
          {fields && (
            <FieldErrorsContext.Provider value={errors}>
              <FieldInputs fields={fields} drafts={decision.drafts} onChange={decision.setDrafts} />
            </FieldErrorsContext.Provider>
          )}
          {decision.asksForJson && (
            <TextField
              label="Form"
              help="JSON that fits the schema of the approval"
              rows={6}
              value={decision.json}
              onChange={decision.setJson}
              error={errors.form}
            />
          )}
          <TextField
            label="Comment"
            help={COMMENTS[approval.comment] ?? 'If you want to say why'}
            rows={2}
            value={decision.comment}
            onChange={decision.setComment}
            error={errors.comment}
          />
          {!key && (
            <TextField
              label="Your name"
              help="Shown with the decision, because no API key says who you are"
              value={decision.by}
              onChange={decision.setBy}
            />
          )}
          {approval.needed > 1 && (
            <p className="faint">{approval.needed} people must approve; one rejection ends it.</p>
          )}
          {decision.refusal && <ErrorBox error={decision.refusal} />}
          <div className="actions">
            <Button type="submit" kind="primary" icon={Check} busy={decision.isSending}>
              Approve
            </Button>
            <Button
              kind="danger"
              icon={X}
              busy={decision.isSending}
              onClick={() => decision.decide('rejected')}
            >
              Reject
            </Button>
          </div>
        </>
      )}
    </form>
  );
}

/** Text is shown as text, whatever a node put into it. */
function ApprovalText({ text }: { text: unknown }) {
  if (text === null || text === undefined || text === '') return null;
  if (typeof text === 'string') return <p className="approval-text">{text}</p>;
  return <JsonView value={text} name="text of the approval" search={false} />;
}
