import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Send } from 'lucide-react';
import { type FormEvent, useId, useRef, useState } from 'react';
import { sendSignal } from '../../../api/calls';
import { Problem } from '../../../api/problem';
import { Button } from '../../../components/Button';
import { ErrorBox } from '../../../components/ErrorBox';
import { TextField } from '../../../components/TextField';
import { toast } from '../../../components/toast';
import { jsonFault } from './jsonFault';
import { type SignalErrors, signalErrors } from './signalErrors';

type SendProps = {
  executionId: string;
  /** The names that somebody waits for. */
  names: readonly string[];
  correlation?: string;
};

/** Sends a signal. What the server refuses is shown at the field that it is about. */
export function SendSignal({ executionId, names, correlation: awaited = '' }: SendProps) {
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  const queries = useQueryClient();
  const [name, setName] = useState(names[0] ?? '');
  const [payload, setPayload] = useState('');
  const [correlation, setCorrelation] = useState(awaited);
  const [errors, setErrors] = useState<SignalErrors>({});
  const sending = useMutation({
    mutationFn: () => sendSignal(executionId, name.trim(), payload.trim() || 'null', correlation),
    onSuccess: ({ number, state }) => {
      setPayload('');
      toast(
        state === 'taken'
          ? `Signal ${number} was sent: a node that waits takes it.`
          : `Signal ${number} was sent. It is kept for the first node that waits for it.`,
      );
      void queries.invalidateQueries({ queryKey: ['execution', executionId] });
    },
    onError: (error) => {
      if (error instanceof Problem) setErrors(signalErrors(error).errors);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    sending.reset();
    const fault = payload.trim() ? jsonFault(payload) : null;
    const found: SignalErrors = {
      ...(name.trim() ? {} : { name: 'Fill this in' }),
      ...(fault ? { payload: fault } : {}),
    };
    setErrors(found);
    if (Object.keys(found).length === 0) sending.mutate();
  };
  const { error } = sending;
  const isPlaced = error instanceof Problem && signalErrors(error).isAllPlaced;
  return (
    <form
      ref={form}
      className="send-signal"
      noValidate
      onSubmit={submit}
      aria-label="Send a signal"
    >
      <h4>Send a signal</h4>
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        error={errors.name}
        list={names.length ? `${id}-names` : undefined}
      />
      <datalist id={`${id}-names`}>
        {names.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <TextField
        label="Payload"
        help="JSON, such as {&quot;amount&quot;: 7}; empty for none"
        value={payload}
        onChange={setPayload}
        error={errors.payload}
        rows={3}
      />
      <TextField
        label="Correlation"
        help="Only nodes that wait for this text, or for none, take the signal"
        value={correlation}
        onChange={setCorrelation}
        error={errors.correlation}
      />
      {error && !isPlaced && <ErrorBox error={error} />}
      <div className="actions">
        <Button type="submit" kind="primary" icon={Send} busy={sending.isPending}>
          Send
        </Button>
      </div>
    </form>
  );
}
