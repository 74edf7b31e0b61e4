import { type KeyboardEvent, type ReactNode, useId, useRef } from 'react';

export type Tab = { id: string; label: ReactNode };

type TabsProps = { label: string; tabs: Tab[]; chosen: string; onChoose: (id: string) => void; children: ReactNode };

/** Arrow keys move between tabs, as in the ARIA practice. */
export function Tabs({ label, tabs, chosen, onChoose, children }: TabsProps) {
  const list = useRef<HTMLDivElement>(null);
  const name = useId();
  const move = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (!step) return;
    const index = (tabs.findIndex((tab) => tab.id === chosen) + step + tabs.length) % tabs.length;
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
      <div id={`${name}-panel`} role="tabpanel" aria-labelledby={`${name}-${chosen}`} className="tab-panel">
        {children}
      </div>
    </div>
  );
}
