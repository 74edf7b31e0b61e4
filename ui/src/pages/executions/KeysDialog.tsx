import { Dialog } from '../../components/Dialog';
import { KEYS } from './listKeys';

export function KeysDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl className="xs-keys">
        {KEYS.map(({ keys, does }) => (
          <div key={does}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <p className="faint">
        Shift-click a checkbox to select all rows between it and the last one that you selected.
      </p>
    </Dialog>
  );
}
