import { Page } from '../../components/basics';
export default function DeadLetters(_: { id?: string; name?: string }) {
  return <Page title="DeadLetters">…</Page>;
}
