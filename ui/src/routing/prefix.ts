// The path that the service is mounted under in another web application; empty where it isn't. The
// server writes it into index.html.

export const PREFIX = prefixOf(typeof document === 'undefined' ? null : document);

function prefixOf(page: Document | null): string {
  return page?.querySelector<HTMLMetaElement>('meta[name="penstock-prefix"]')?.content ?? '';
}

/** The address of the service, for commands that a user copies. */
export function serviceAddress(): string {
  return location.origin + PREFIX;
}
