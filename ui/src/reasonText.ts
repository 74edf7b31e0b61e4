import { HINT_TEXTS, REASON_TEXTS } from './reasons';
import { withLocalTimes } from './time';

/** The text of a state's reason. A reason without a text is shown as it is. */
export function reasonText(reason: string | null | undefined): string {
  if (!reason) return '';
  const text = REASON_TEXTS[reason];
  if (text === undefined) return withLocalTimes(reason);
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** What to do about an error of this category, or an empty text. */
export function hintText(category: string | null | undefined): string {
  if (!category) return '';
  return HINT_TEXTS[category] ?? '';
}
