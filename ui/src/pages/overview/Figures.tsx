import { Inbox, Layers, type LucideIcon, MailWarning, Server } from 'lucide-react';
import type { Stats } from '../../api/calls';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { iconOf, stateClass } from '../../states';
import { countText, failureShare, percentText } from './numbers';

/** The server counts active executions and dead letters up to here. */
const CAP = 10_000;

type Figure = {
  label: string;
  value: string;
  note: string;
  to: string;
  icon: LucideIcon;
  tone?: string | undefined;
};

/** The main numbers; each is a link to what it counts. */
export function Figures({ stats, span }: { stats: Stats; span: string }) {
  const figures = [...ofExecutions(stats, span), ...ofWorkers(stats)];
  return (
    <ul className="overview-figures" aria-label="Figures">
      {figures.map(({ label, value, note, to, icon: Icon, tone = '' }) => (
        <li key={label}>
          <Link to={to} className={`card overview-figure ${tone}`}>
            <span className="overview-figure-label">
              <Icon size={15} aria-hidden="true" />
              {label}
            </span>
            <span className="overview-figure-value number">{value}</span>
            <span className="overview-figure-note">{note}</span>
          </Link>
        </li>
      ))}
    </ul>
  );
}

function ofExecutions({ active, totals, since }: Stats, span: string): Figure[] {
  const waiting = [
    active.PENDING ? `${countText(active.PENDING, CAP)} pending` : '',
    active.PAUSED ? `${countText(active.PAUSED, CAP)} paused` : '',
  ].filter(Boolean);
  const share = failureShare(totals);
  const ended = (
    state: 'COMPLETED' | 'FAILED' | 'CANCELLED',
    label: string,
    note: string,
  ): Figure => ({
    label,
    value: countText(totals[state]),
    note,
    to: paths.executions({ state, since }),
    icon: iconOf(state),
    tone: totals[state] ? stateClass(state) : undefined,
  });
  return [
    {
      label: 'Running now',
      value: countText(active.RUNNING, CAP),
      note: waiting.join(', ') || 'executions',
      to: paths.executions({ state: ['RUNNING', 'PENDING', 'PAUSED'] }),
      icon: iconOf('RUNNING'),
      tone: active.RUNNING ? stateClass('RUNNING') : undefined,
    },
    ended(
      'COMPLETED',
      'Completed',
      share === null ? 'none ended' : `${percentText(1 - share)} of ended`,
    ),
    ended('FAILED', 'Failed', share === null ? 'none ended' : `${percentText(share)} of ended`),
    ended('CANCELLED', 'Cancelled', `in ${span}`),
  ];
}

function toneOfWaiting(waiting: number, isStuck: boolean): string | undefined {
  if (isStuck) return stateClass('FAILED');
  return waiting ? stateClass('QUEUED') : undefined;
}

function ofWorkers({ dead_letters, workers, orchestrators, tasks, inbox }: Stats): Figure[] {
  const isStuck = workers === 0 && tasks.waiting > 0;
  return [
    {
      label: 'Dead letters',
      value: countText(dead_letters, CAP),
      note: dead_letters ? 'open' : 'none open',
      to: paths.deadLetters(),
      icon: MailWarning,
      tone: dead_letters ? stateClass('FAILED') : undefined,
    },
    {
      label: 'Workers',
      value: countText(workers),
      note: `${countText(orchestrators)} ${orchestrators === 1 ? 'orchestrator' : 'orchestrators'}`,
      to: paths.workers(),
      icon: Server,
      tone: workers ? undefined : stateClass('FAILED'),
    },
    {
      label: 'Tasks waiting',
      value: countText(tasks.waiting),
      note: isStuck ? 'no worker is running' : `${countText(tasks.running)} running`,
      to: paths.workers(),
      icon: Layers,
      tone: toneOfWaiting(tasks.waiting, isStuck),
    },
    {
      label: 'Inbox lag',
      value: countText(inbox),
      note: inbox === 1 ? 'event waiting' : 'events waiting',
      to: paths.workers(),
      icon: Inbox,
      tone: orchestrators ? undefined : stateClass('FAILED'),
    },
  ];
}
