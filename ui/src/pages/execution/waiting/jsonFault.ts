/** Why a text isn't JSON, or null if it is. */
export function jsonFault(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return `This isn't JSON: ${(error as Error).message}`;
  }
}
