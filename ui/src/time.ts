// Times in the viewer's zone and in UTC, and durations, as texts.

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const UTC_TIME = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z/g;

export function durationText(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return '–';
  if (seconds < 0.0005) return '0 ms';
  if (seconds < 0.01) return `${(seconds * 1000).toFixed(1)} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(2)} s`;
  if (seconds < MINUTE) return `${seconds.toFixed(1)} s`;
  if (seconds < HOUR) {
    return `${Math.floor(seconds / MINUTE)} min ${Math.floor(seconds % MINUTE)} s`;
  }
  if (seconds < DAY) {
    return `${Math.floor(seconds / HOUR)} h ${Math.floor((seconds % HOUR) / MINUTE)} min`;
  }
  return `${Math.floor(seconds / DAY)} d ${Math.floor((seconds % DAY) / HOUR)} h`;
}

/** The time until a moment, in whole seconds: `3 min 20 s`. */
export function leftText(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole <= 0) return 'due now';
  return whole < MINUTE ? `${whole} s` : durationText(whole);
}

/** A text with its times in UTC (2027-01-31T08:00:00Z) in the viewer's zone. */
export function withLocalTimes(text: string): string {
  return text.replace(UTC_TIME, (at) => (Number.isNaN(Date.parse(at)) ? at : localText(at)));
}

export function secondsBetween(
  from: string | null | undefined,
  to: string | null | undefined,
): number | null {
  return from && to ? (Date.parse(to) - Date.parse(from)) / 1000 : null;
}

export function localText(at: string): string {
  return new Date(at).toLocaleString(undefined, {
    year: 'numeric',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
    timeZoneName: 'short',
    hourCycle: 'h23',
  });
}

export function utcText(at: string): string {
  return new Date(at).toISOString().replace('T', ' ').replace('Z', ' UTC');
}

/** The time of day on a clock of 24 hours. */
export function clockText(at: string | number, { milliseconds = false } = {}): string {
  return new Date(at).toLocaleTimeString(undefined, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    ...(milliseconds && { fractionalSecondDigits: 3 }),
    hourCycle: 'h23',
  });
}

/** The name of the viewer's time zone at a moment, such as CET. */
export function zoneText(at: string | number = Date.now()): string {
  const parts = new Intl.DateTimeFormat(undefined, { timeZoneName: 'short' }).formatToParts(
    new Date(at),
  );
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? '';
}

export function agoText(at: string, now: number): string {
  const seconds = (now - Date.parse(at)) / 1000;
  if (seconds < 2) return 'just now';
  if (seconds < MINUTE) return `${Math.floor(seconds)} s ago`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min ago`;
  if (seconds < DAY) return `${Math.floor(seconds / HOUR)} h ago`;
  if (seconds < 7 * DAY) return `${Math.floor(seconds / DAY)} d ago`;
  return new Date(at).toLocaleDateString(undefined, {
    year: 'numeric',
    month: 'short',
    day: 'numeric',
  });
}
