import { Component, type ReactNode } from 'react';
import { Button } from './Button';
import { Empty } from './Empty';

/** What breaks in one page leaves the rest usable: a mistake of ours, or a part of a version that was replaced. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state = { error: null as Error | null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <Empty title="This page couldn't be shown">
        <p>{this.state.error.message}</p>
        <p>If Penstock was updated a moment ago, loading the page again brings the new version.</p>
        <Button kind="primary" onClick={() => location.reload()}>
          Load it again
        </Button>
      </Empty>
    );
  }
}
