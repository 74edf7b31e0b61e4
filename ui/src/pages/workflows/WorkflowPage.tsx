import { Page } from '../../components/basics';
export default function WorkflowPage(_: { id?: string; name?: string }) {
  return <Page title="WorkflowPage">…</Page>;
}
