import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { getWorkflowText } from '../../api/calls';
import { Loaded } from '../../components/Loaded';
import { useTitle } from '../../components/useTitle';
import { definitionText } from '../../editor/formats';
import { useQueryString } from '../../routing/useQueryString';
import { preferredFormat } from './drafts';
import { firstDocument } from './firstDocument';
import { WorkflowEditor } from './WorkflowEditor';
import './editor.css';

/** Edits a stored workflow, or a new one if there is no name. */
export default function EditorPage({ name }: { name: string | null }) {
  useTitle(name ? `Edit ${name}` : 'New workflow');
  const [query] = useQueryString();
  const version = query.get('version') ?? undefined;
  const [format] = useState(preferredFormat);
  const stored = useQuery({
    queryKey: ['workflows', 'text', name, version],
    queryFn: async () =>
      name ? definitionText(await getWorkflowText(name, version), format) : firstDocument(format),
    staleTime: Number.POSITIVE_INFINITY, // what is edited isn't replaced behind the author's back
    gcTime: 0,
    refetchOnWindowFocus: false,
  });
  return (
    <Loaded query={stored} what="Loading the workflow">
      {(text) => (
        <WorkflowEditor key={version ?? ''} name={name} storedText={text} storedFormat={format} />
      )}
    </Loaded>
  );
}
