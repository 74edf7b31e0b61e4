import { useQuery } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { getNode, type NodeDetail } from '../../api/calls';
import { Button, CopyButton, Elapsed, Loaded, StateBadge, Time } from '../../components/basics';
import { JsonView } from '../../components/json';
import { Tabs } from '../../components/tabs';
import { reasonText } from '../../reasons';
import { nodeHasEnded } from '../../states';
import { Attempts } from './Attempts';
import { ErrorDetail } from './ErrorDetail';
import { Logs } from './Logs';
import type { Run } from './useRun';

const TABS = [
  { id: 'summary', label: 'Summary' },
  { id: 'output', label: 'Output' },
  { id: 'config', label: 'Config' },
  { id: 'logs', label: 'Logs' },
];
const LOOK_MS = 1500;

/** All about one node; read again whenever its state changes. */
export function NodePanel({ run, id, onClose }: { run: Run; id: string; onClose: () => void }) {
  const node = useSyncExternalStore(run.store.subscribe, () => run.store.get(id));
  const [tab, setTab] = useState('summary');
  const panel = useRef<HTMLElement>(null);
  const state = node?.state ?? '';
  const detail = useQuery({
    queryKey: ['execution', run.execution.execution_id, 'node', id, state, node?.attempt],
    queryFn: () => getNode(run.execution.execution_id, id),
    placeholderData: (before: NodeDetail | undefined) => before,
    refetchInterval: state && !nodeHasEnded(state) && state !== 'PENDING' ? LOOK_MS : false,
  });
  useEffect(() => {
    const before = document.activeElement;
    panel.current?.focus();
    return () => {
      // The focus was inside and has nowhere to be: back to where the node was opened from.
      if (document.activeElement === document.body && before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <aside
      ref={panel}
      className="card node-panel"
      aria-label={`Node ${id}`}
      tabIndex={-1}
      onKeyDown={(event) => event.key === 'Escape' && onClose()}
    >
      <header className="card-head">
        <h2 className="node-title">{id}</h2>
        <div className="actions">
          {state && <StateBadge state={state} />}
          <CopyButton text={id} label="Copy the node's id" />
          <Button kind="quiet" icon={X} aria-label="Close the node" title="Close (Esc)" onClick={onClose} />
        </div>
      </header>
      <Loaded query={detail} what="Reading the node">
        {(data) => (
          <Tabs label="Parts of the node" tabs={TABS} chosen={tab} onChoose={setTab}>
            {tab === 'summary' && <Summary detail={data} />}
            {tab === 'output' && <Output detail={data} />}
            {tab === 'config' && <Config detail={data} />}
            {tab === 'logs' && <Logs run={run} id={id} state={data.state} />}
          </Tabs>
        )}
      </Loaded>
    </aside>
  );
}

function Summary({ detail }: { detail: NodeDetail }) {
  const reason = detail.reason_text ?? reasonText(detail.reason);
  return (
    <div className="node-parts">
      {detail.error && <ErrorDetail error={detail.error} />}
      {reason && !detail.error && <p className="node-reason">{withCondition(detail, reason)}</p>}
      <dl className="facts">
        <Fact name="Handler">{detail.handler}</Fact>
        <Fact name="Queue">{detail.queue}</Fact>
        <Fact name="Worker">{detail.worker_id}</Fact>
        <Fact name="Queued">{detail.queued_at && <Time at={detail.queued_at} />}</Fact>
        <Fact name="Waited">
          {detail.queued_at && detail.started_at && <Elapsed from={detail.queued_at} to={detail.started_at} />}
        </Fact>
        <Fact name="Ran">{detail.started_at && <Elapsed from={detail.started_at} to={endOf(detail)} />}</Fact>
        <Fact name="Depends on">{detail.dependencies.join(', ')}</Fact>
        <Fact name="Condition">{detail.condition && <code>{detail.condition}</code>}</Fact>
        <Fact name="Trigger rule">{detail.trigger_rule !== 'all_success' && detail.trigger_rule}</Fact>
        <Fact name="Time limit">{detail.timeout_seconds ? `${detail.timeout_seconds} s` : null}</Fact>
      </dl>
      <Attempts detail={detail} />
    </div>
  );
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  if (!children) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** One that waits for its next attempt runs no longer, though it hasn't ended. */
function endOf(detail: NodeDetail): string | null {
  return (
    detail.finished_at ??
    (detail.state === 'RUNNING' ? null : (detail.attempts.at(-1)?.finished_at ?? detail.started_at ?? null))
  );
}

function withCondition(detail: NodeDetail, reason: string): React.ReactNode {
  if (detail.reason !== 'condition_false' || !detail.condition) return reason;
  return (
    <>
      {reason}: <code>{detail.condition}</code>
    </>
  );
}

function Output({ detail }: { detail: NodeDetail }) {
  if (detail.state === 'COMPLETED')
    return <JsonView value={detail.output ?? null} name={`output of ${detail.node_id}`} />;
  const why = nodeHasEnded(detail.state) ? 'It has none.' : 'It has none yet.';
  return <p className="faint">{why} Only a node that completed has an output.</p>;
}

function Config({ detail }: { detail: NodeDetail }) {
  const { config, resolved_config: resolved, unresolved } = detail;
  return (
    <div className="node-parts">
      <h3>As the handler got it</h3>
      {resolved ? (
        <JsonView value={resolved} name={`config of ${detail.node_id}`} />
      ) : (
        <p className="faint">{unresolved ?? 'It is filled in when the node starts.'}</p>
      )}
      <p className="faint">Secrets are filled in by the worker, and shown nowhere.</p>
      <h3>As it is written</h3>
      <JsonView value={config} name="config as written" search={false} />
    </div>
  );
}
