import { Page } from '../../components/basics';
export default function ExecutionPage(_: { id?: string; name?: string }) {
  return <Page title="ExecutionPage">…</Page>;
}
