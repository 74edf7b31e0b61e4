import { Component, type ReactNode } from 'react';
import { Button } from './Button';
import { Empty } from './Empty';

/**
 * An error in one page leaves the rest of the UI usable: a bug, or a file of a version that has
 * been replaced.
 */
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
        <p>If Penstock has just been updated, reload the page to get the new version.</p>
        <Button kind="primary" onClick={() => location.reload()}>
          Reload the page
        </Button>
      </Empty>
    );
  }
}
