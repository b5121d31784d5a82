/** The only links agent text can make (U-40, T31): a parsed http, https or mailto target with the host one would reach. */
export interface Link {
  readonly href: string;
  /** Host with its port, or the address of a mailto; what a person must see before following. */
  readonly host: string;
}

const usual = ['http:', 'https:', 'mailto:'] as const;

/** Null for every other scheme, relative addresses, credentials in the address, and what does not parse. */
export const linkTarget = (address: string, schemes: readonly string[] = usual): Link | null => {
  if (address.length > 4096 || !URL.canParse(address)) return null;
  const url = new URL(address);
  if (!schemes.includes(url.protocol)) return null;
  if (url.protocol === 'mailto:') return { href: url.href, host: decodeSafely(url.pathname) };
  // `https://example.com@evil.test` reads as the wrong host.
  if (url.username !== '' || url.password !== '' || url.host === '') return null;
  return { href: url.href, host: url.host };
};

const decodeSafely = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};
