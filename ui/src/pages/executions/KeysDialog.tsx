import { Dialog } from '../../components/Dialog';
import { KEYS } from './listKeys';

export function KeysDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
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
      <p className="faint">Shift and a click on a box selects all rows from the last one on.</p>
    </Dialog>
  );
}
