import { TriangleAlert } from 'lucide-react';
import { messageOf, Problem } from '../api/problem';
import { Button } from './Button';

export function ErrorBox({ error, retry }: { error: unknown; retry?: () => void }) {
  const problems = error instanceof Problem ? error.problems : [];
  return (
    <div className="error-box" role="alert">
      <TriangleAlert size={18} aria-hidden="true" />
      <div>
        <p>{messageOf(error)}</p>
        {problems.length > 0 && (
          <ul>
            {problems.slice(0, 20).map((problem) => (
              <li key={`${problem.path}${problem.code}${problem.message}`}>
                {problem.path && <code>{problem.path}</code>} {problem.message}
              </li>
            ))}
          </ul>
        )}
      </div>
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}
