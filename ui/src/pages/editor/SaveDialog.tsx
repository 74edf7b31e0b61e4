import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Save } from 'lucide-react';
import { getWorkflowText, putDocument } from '../../api/calls';
import { Problem } from '../../api/problem';
import { Button } from '../../components/Button';
import { Dialog } from '../../components/Dialog';
import { ErrorBox } from '../../components/ErrorBox';
import { Loaded } from '../../components/Loaded';
import { toast } from '../../components/toast';
import { definitionText, formatTree } from '../../editor/formats';
import { parseJson } from '../../editor/parseJson';
import { DiffResult } from '../workflows/diff/DiffResult';
import '../workflows/diff/diff.css';

type SaveProps = {
  json: string;
  name: string;
  onSaved: (name: string) => void;
  onClose: () => void;
};

/** What saving changes: the difference from the latest version of the workflow of this name. */
export function SaveDialog({ json, name, onSaved, onClose }: SaveProps) {
  const queries = useQueryClient();
  const latest = useQuery({
    queryKey: ['workflows', 'latest text', name],
    queryFn: () => latestOf(name),
    gcTime: 0,
    staleTime: 0,
  });
  const saving = useMutation({
    mutationFn: () => putDocument(json),
    onSuccess: (stored) => {
      const words = stored.created ? 'is stored' : 'was stored already, with the same content';
      toast(`${stored.name}@${stored.version} ${words}`);
      void queries.invalidateQueries({ queryKey: ['workflows'] });
      onSaved(stored.name);
    },
  });
  const isNew = latest.data === null;
  const { root } = parseJson(json);
  const text = root ? formatTree(root, 'json') : json;
  return (
    <Dialog
      wide
      title={isNew ? `Save ${name} as a new workflow` : `Save ${name} as the next version`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Back</Button>
          <Button
            kind="primary"
            icon={Save}
            busy={saving.isPending}
            disabled={latest.data === undefined}
            onClick={() => saving.mutate()}
          >
            {isNew ? 'Save' : 'Save the next version'}
          </Button>
        </>
      }
    >
      <Loaded query={latest} what="Comparing with the stored version">
        {(stored) =>
          stored === null ? (
            <p>
              No workflow is called <strong>{name}</strong> yet. This text becomes its version 1.
            </p>
          ) : (
            <>
              <p>
                What changes from version {stored.version}, the latest. <code>{name}</code> and{' '}
                <code>{name}@latest</code> then mean the new version; other aliases stay where they
                are.
              </p>
              <DiffResult
                before={stored.text}
                after={text}
                label={`Version ${stored.version} and this text side by side`}
              />
            </>
          )
        }
      </Loaded>
      {saving.error && <ErrorBox error={saving.error} />}
    </Dialog>
  );
}

async function latestOf(name: string): Promise<{ version: number; text: string } | null> {
  try {
    const answer = await getWorkflowText(name);
    return { version: JSON.parse(answer).version, text: definitionText(answer, 'json') };
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return null;
    throw error;
  }
}
