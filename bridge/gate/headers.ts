/**
 * The headers of every answer (L-11), also of refusals written to a bare socket. There is no Access-Control-* header
 * anywhere in this room, and none may be added. Called by `listen.ts` and `gate.ts`.
 */
import { createHash } from 'node:crypto';

// Not imported, for the reason given in listen.ts.
const { STATUS_CODES } = process.getBuiltinModule('node:http');

export type Headers = Readonly<Record<string, string>>;

/** Kit's route announcer carries this one static inline style; checked again whenever Kit is raised. */
const announcerStyle = 'S8qMpvofolR8Mpjy4kQvEm7m1q8clzU4dfDH0AmvZjo=';
const closedFeatures = [
  'accelerometer',
  'autoplay',
  'camera',
  'clipboard-read',
  'display-capture',
  'encrypted-media',
  'fullscreen',
  'gamepad',
  'geolocation',
  'gyroscope',
  'hid',
  'idle-detection',
  'local-fonts',
  'magnetometer',
  'microphone',
  'midi',
  'payment',
  'picture-in-picture',
  'publickey-credentials-create',
  'publickey-credentials-get',
  'screen-wake-lock',
  'serial',
  'usb',
  'xr-spatial-tracking',
];

/** `sha256-…` of every inline script of a page, in order. */
export const inlineScriptHashes = (html: string): string[] =>
  Array.from(
    html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>([\s\S]*?)<\/script>/gi),
    (match) =>
      `sha256-${createHash('sha256')
        .update(match[1] ?? '')
        .digest('base64')}`,
  );

/** What every answer carries. `scriptHashes` are those of the shell, computed at start. */
export const securityHeaders = (scriptHashes: readonly string[]): Headers => ({
  'Content-Security-Policy': [
    "default-src 'none'",
    ["script-src 'self'", ...scriptHashes.map((hash) => `'${hash}'`)].join(' '),
    "style-src 'self'",
    `style-src-attr 'unsafe-hashes' 'sha256-${announcerStyle}'`,
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types svelte-trusted-html countersign-script-url',
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': [...closedFeatures.map((feature) => `${feature}=()`), 'clipboard-write=(self)'].join(', '),
});

export const noStore: Headers = { 'Cache-Control': 'no-store' };
export const plain: Headers = { 'Content-Type': 'text/plain; charset=utf-8', ...noStore };

/** A whole small answer as bytes for a socket that has left, or never entered, HTTP's request handling. */
export const bareAnswer = (status: number, headers: Headers): string => {
  const body = `${STATUS_CODES[status] ?? 'Refused'}\n`;
  const all = { ...headers, ...plain, 'Content-Length': String(Buffer.byteLength(body)), Connection: 'close' };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Refused'}\r\n${lines.join('')}\r\n${body}`;
};
