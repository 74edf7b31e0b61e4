/** Marks what differs, not by colour alone. */
export function Differs({ what = 'differs' }: { what?: string }) {
  return (
    <span className="cmp-mark" title={what}>
      <span aria-hidden="true">≠</span> <span className="visually-hidden">{what}</span>
    </span>
  );
}
