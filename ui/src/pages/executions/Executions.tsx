import { Page } from '../../components/basics';
export default function Executions(_: { id?: string; name?: string }) {
  return <Page title="Executions">…</Page>;
}
