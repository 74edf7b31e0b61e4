import { Plus, X } from 'lucide-react';
import { Button } from '../../../components/Button';
import type { LabelDraft } from './labelDrafts';

type LabelsProps = { labels: LabelDraft[]; onChange: (labels: LabelDraft[]) => void };

export function LabelInputs({ labels, onChange }: LabelsProps) {
  const change = (index: number, part: Partial<LabelDraft>) =>
    onChange(labels.map((label, n) => (n === index ? { ...label, ...part } : label)));
  return (
    <fieldset className="st-list">
      <legend>
        <span className="st-name">Labels</span>
      </legend>
      <p className="faint">Labels help you find the execution, for example team: billing</p>
      {labels.map((label, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the labels are what stands in their places
        <div key={index} className="st-item">
          <input
            aria-label={`Key of label ${index + 1}`}
            placeholder="key"
            value={label.key}
            onChange={(event) => change(index, { key: event.target.value })}
          />
          <input
            aria-label={`Value of label ${index + 1}`}
            placeholder="value"
            value={label.value}
            onChange={(event) => change(index, { value: event.target.value })}
          />
          <Button
            kind="quiet"
            icon={X}
            aria-label={`Remove label ${index + 1}`}
            onClick={() => onChange(labels.filter((_, n) => n !== index))}
          />
        </div>
      ))}
      <Button icon={Plus} onClick={() => onChange([...labels, { key: '', value: '' }])}>
        Add a label
      </Button>
    </fieldset>
  );
}
