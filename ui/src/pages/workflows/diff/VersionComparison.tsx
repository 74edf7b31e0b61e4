import { Loaded } from '../../../components/Loaded';
import { DiffResult } from './DiffResult';
import { useDefinition } from './useDefinition';

export function VersionComparison({ name, from, to }: { name: string; from: number; to: number }) {
  const left = useDefinition(name, from);
  const right = useDefinition(name, to);
  return (
    <Loaded query={left}>
      {(before) => (
        <Loaded query={right}>
          {(after) => (
            <DiffResult
              key={`${from} ${to}`}
              before={before}
              after={after}
              label={`Version ${from} and version ${to} side by side`}
            />
          )}
        </Loaded>
      )}
    </Loaded>
  );
}
