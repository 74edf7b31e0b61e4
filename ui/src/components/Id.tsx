export function Id({ children }: { children: string }) {
  return (
    <code className="id" title={children}>
      {children}
    </code>
  );
}
