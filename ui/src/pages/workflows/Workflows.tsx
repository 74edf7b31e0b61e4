import { Page } from '../../components/basics';
export default function Workflows(_: { id?: string; name?: string }) {
  return <Page title="Workflows">…</Page>;
}
