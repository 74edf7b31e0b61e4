import { Page } from '../../components/basics';
export default function Overview(_: { id?: string; name?: string }) {
  return <Page title="Overview">…</Page>;
}
