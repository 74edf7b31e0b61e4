import { Page } from '../../components/basics';
export default function Workers(_: { id?: string; name?: string }) {
  return <Page title="Workers">…</Page>;
}
