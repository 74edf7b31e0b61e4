export function LiveIndicator({ live }: { live: boolean }) {
  const help = live ? 'Follows what happens' : 'The stream of events is away; read every few seconds';
  return (
    <span className={live ? 'overview-live on' : 'overview-live'} title={help} role="status">
      {live ? 'live' : 'connecting'}
    </span>
  );
}
