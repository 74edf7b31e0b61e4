import { type AliasAt, LATEST, percent } from './aliases';

/** Aliases as tags. */
export function AliasTags({ aliases }: { aliases: AliasAt[] }) {
  return (
    <>
      {aliases.map(({ alias, share }) => (
        <span key={alias} className={alias === LATEST ? 'tag' : 'tag wf-alias'}>
          {alias}
          {share !== null && <span className="faint"> {percent(share)}</span>}
        </span>
      ))}
    </>
  );
}
