import { useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { listExecutions, listWorkflows } from '../api/calls';
import { useSession } from '../api/useSession';
import { navigate } from '../routing/navigation';
import { placesFor } from './places';
import './palette.css';

const EXECUTIONS_MAX = 6;
const TEXT_MIN = 3;

/** Leads to a page, a workflow, or an execution by the beginning of its id. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const [index, setIndex] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const name = useId();
  const scopes = useSession().me?.scopes ?? [];
  const wanted = text.trim();
  const workflows = useQuery({
    queryKey: ['workflows', 'names'],
    queryFn: () => listWorkflows(null, 200),
    staleTime: 60_000,
  });
  const executions = useQuery({
    queryKey: ['executions', 'palette', wanted],
    queryFn: () => listExecutions({ text: wanted }, null, EXECUTIONS_MAX),
    enabled: wanted.length >= TEXT_MIN,
  });
  const places = placesFor(
    text,
    scopes,
    workflows.data?.items ?? [],
    (wanted.length >= TEXT_MIN && executions.data?.items) || [],
  );
  const chosen = Math.min(index, places.length - 1);
  useEffect(() => {
    const before = document.activeElement;
    if (dialog.current && !dialog.current.open) dialog.current.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  useEffect(() => {
    list.current?.children[chosen]?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);
  const go = (to: string | undefined) => {
    if (to === undefined) return;
    onClose();
    navigate(to);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setIndex((chosen + step + places.length) % Math.max(1, places.length));
    else if (event.key === 'Enter') go(places[chosen]?.to);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={dialog}
      className="dialog palette"
      aria-label="Go to"
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
      onKeyDown={onKeyDown}
    >
      <input
        type="text"
        role="combobox"
        aria-label="Page, workflow or id of an execution"
        aria-expanded="true"
        aria-controls={`${name}-list`}
        aria-activedescendant={places.length ? `${name}-${chosen}` : undefined}
        aria-autocomplete="list"
        placeholder="Page, workflow or id of an execution"
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setIndex(0);
        }}
      />
      <div
        ref={list}
        id={`${name}-list`}
        className="palette-list"
        role="listbox"
        aria-label="Places"
      >
        {places.map((place, number) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are the combobox's
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the combobox
          <div
            key={place.to}
            id={`${name}-${number}`}
            role="option"
            aria-selected={number === chosen}
            onClick={() => go(place.to)}
            onPointerMove={() => setIndex(number)}
          >
            <span>{place.label}</span>
            <span className="palette-detail">{place.detail}</span>
          </div>
        ))}
      </div>
      {places.length === 0 && (
        <p className="palette-none" role="status">
          {executions.isFetching ? 'Searching …' : 'Nothing has this in its name or id'}
        </p>
      )}
    </dialog>
  );
}
