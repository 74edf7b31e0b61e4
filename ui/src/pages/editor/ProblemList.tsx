import { CircleAlert, CircleCheck, TriangleAlert } from 'lucide-react';
import type { Range, TextProblem } from '../../editor/documentTree';

type ListProps = {
  text: string;
  problems: readonly TextProblem[];
  isChecking: boolean;
  onShow: (range: Range) => void;
};

const SHOWN_MAX = 50;

/** Every problem with its line and column; a click leads there. */
export function ProblemList({ text, problems, isChecking, onShow }: ListProps) {
  return (
    <div className="ed-problems">
      <p role="status" className="ed-verdict">
        {verdictOf(problems, isChecking)}
      </p>
      {problems.length > 0 && (
        <ul aria-label="Problems">
          {problems.slice(0, SHOWN_MAX).map((problem) => (
            <li key={`${problem.from} ${problem.message}`}>
              <button type="button" className={problem.severity} onClick={() => onShow(problem)}>
                {problem.severity === 'error' ? (
                  <CircleAlert size={15} aria-label="Error" />
                ) : (
                  <TriangleAlert size={15} aria-label="Warning" />
                )}
                <span className="number">{placeText(text, problem.from)}</span>
                <span>{problem.message}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function verdictOf(problems: readonly TextProblem[], isChecking: boolean) {
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  const warnings = problems.length - errors;
  if (isChecking && errors === 0) return 'Checking …';
  const parts = [
    ...(errors ? [errors === 1 ? '1 problem' : `${errors} problems`] : []),
    ...(warnings ? [warnings === 1 ? '1 warning' : `${warnings} warnings`] : []),
  ];
  if (parts.length) return parts.join(', ');
  return (
    <>
      <CircleCheck size={15} aria-hidden="true" /> No problems
    </>
  );
}

/** Line and column, both from 1 on. */
function placeText(text: string, position: number): string {
  const before = text.slice(0, position);
  const line = before.split('\n').length;
  return `${line}:${position - before.lastIndexOf('\n')}`;
}
