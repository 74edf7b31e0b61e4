import { type KeyboardEvent, type ReactNode, useId, useRef } from 'react';

export type Tab = { id: string; label: ReactNode };

type TabsProps = {
  label: string;
  tabs: Tab[];
  chosen: string;
  onChoose: (id: string) => void;
  children: ReactNode;
};

const STEPS: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };

/** Arrow keys move between tabs, as the ARIA practices recommend. */
export function Tabs({ label, tabs, chosen, onChoose, children }: TabsProps) {
  const list = useRef<HTMLDivElement>(null);
  const name = useId();
  const move = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (!step) return;
    const current = tabs.findIndex((tab) => tab.id === chosen);
    const index = (current + step + tabs.length) % tabs.length;
    onChoose(tabs[index]?.id ?? chosen);
    list.current?.querySelectorAll<HTMLButtonElement>('[role=tab]')[index]?.focus();
  };
  return (
    <div className="tabs">
      <div ref={list} role="tablist" aria-label={label} className="tab-list" onKeyDown={move}>
        {tabs.map((tab) => (
          <button
            key={tab.id}
            id={`${name}-${tab.id}`}
            type="button"
            role="tab"
            className="tab"
            aria-selected={tab.id === chosen}
            aria-controls={`${name}-panel`}
            tabIndex={tab.id === chosen ? 0 : -1}
            onClick={() => onChoose(tab.id)}
          >
            {tab.label}
          </button>
        ))}
      </div>
      <div
        id={`${name}-panel`}
        role="tabpanel"
        aria-labelledby={`${name}-${chosen}`}
        className="tab-panel"
      >
        {children}
      </div>
    </div>
  );
}
