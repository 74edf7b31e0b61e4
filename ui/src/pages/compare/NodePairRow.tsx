import { useState } from 'react';
import { StateBadge } from '../../components/StateBadge';
import { durationText } from '../../time';
import { DiffResult } from '../workflows/diff/DiffResult';
import { Differs } from './Differs';
import { type NodePair, sortedText } from './nodePairs';

type RowProps = { pair: NodePair; leftOutput: unknown; rightOutput: unknown };

export function NodePairRow({ pair, leftOutput, rightOutput }: RowProps) {
  const [isOpen, setOpen] = useState(false);
  const { id, left, right } = pair;
  return (
    <>
      <tr>
        <th scope="row">{id}</th>
        <td className={pair.isStateDifferent ? 'differs' : ''}>
          {left ? <StateBadge state={left.state} /> : 'not there'}
        </td>
        <td className={pair.isStateDifferent ? 'differs' : ''}>
          {right ? <StateBadge state={right.state} /> : 'not there'}{' '}
          {pair.isStateDifferent && <Differs what="the states differ" />}
        </td>
        <td className={pair.isTimeDifferent ? 'number right differs' : 'number right'}>
          {durationText(pair.leftSeconds)}
        </td>
        <td className={pair.isTimeDifferent ? 'number right differs' : 'number right'}>
          {durationText(pair.rightSeconds)}{' '}
          {pair.isTimeDifferent && <Differs what="the times differ" />}
        </td>
        <td className={pair.isOutputDifferent ? 'differs' : ''}>
          {pair.isOutputDifferent === null && <span className="faint">none</span>}
          {pair.isOutputDifferent === false && 'the same'}
          {pair.isOutputDifferent && (
            <button
              type="button"
              className="as-link"
              aria-expanded={isOpen}
              onClick={() => setOpen(!isOpen)}
            >
              differs
            </button>
          )}
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={6}>
            <DiffResult
              before={sortedText(leftOutput)}
              after={sortedText(rightOutput)}
              label={`The two outputs of ${id} side by side`}
              what="outputs"
            />
          </td>
        </tr>
      )}
    </>
  );
}
