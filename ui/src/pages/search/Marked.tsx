/** A text in which a part is marked, wherever it stands. */
export function Marked({ text, part }: { text: string; part: string }) {
  const pieces: { piece: string; isPart: boolean; from: number }[] = [];
  const lower = text.toLowerCase();
  const wanted = part.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(wanted); wanted && at >= 0; at = lower.indexOf(wanted, from)) {
    pieces.push({ piece: text.slice(from, at), isPart: false, from });
    pieces.push({ piece: text.slice(at, at + part.length), isPart: true, from: at });
    from = at + part.length;
  }
  pieces.push({ piece: text.slice(from), isPart: false, from });
  return pieces.map(({ piece, isPart, from: place }) =>
    isPart ? <mark key={`m${place}`}>{piece}</mark> : <span key={place}>{piece}</span>,
  );
}
