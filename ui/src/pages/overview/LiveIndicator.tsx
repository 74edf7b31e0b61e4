export function LiveIndicator({ live }: { live: boolean }) {
  const help = live
    ? 'Updates as events arrive'
    : 'The event stream is not connected; refreshes every few seconds';
  return (
    <span className={live ? 'overview-live on' : 'overview-live'} title={help} role="status">
      {live ? 'live' : 'connecting'}
    </span>
  );
}
