/**
 * Secrets and exposure (W-11): what is built into pages, written as a default, or left open to everyone. Pure. Evidence
 * names the variable and never its value.
 */
import type { Kind } from '../kinds.ts';
import type { Lines } from '../words.ts';
import { near } from './near.ts';
import type { Hit, RuleId } from './table.ts';

const secretWord =
  '(?:SECRET|PRIVATE_KEY|SERVICE_ROLE|PASSWORD|PASSWD|ACCESS_TOKEN|AUTH_TOKEN|JWT_SIGNING|ENCRYPTION_KEY|ADMIN_KEY)';
const publicName = new RegExp(
  `\\b(?:NEXT_PUBLIC|VITE|REACT_APP|EXPO_PUBLIC|NUXT_PUBLIC|GATSBY|PUBLIC|VUE_APP)_\\w{0,60}?${secretWord}\\w{0,60}`,
  'g',
);

interface Check {
  readonly rule: RuleId;
  readonly kinds: readonly Kind[];
  /** A word without which nothing can fit: cheaper than the anchor. */
  readonly hint: readonly string[];
  readonly anchor: RegExp;
  readonly test: RegExp;
  readonly before?: number;
}
const checks: readonly Check[] = [
  { rule: 'secrets.public', kinds: ['source', 'env', 'shell', 'doc'], hint: ['PUBLIC_', 'VITE_', '_APP_', 'GATSBY_'], anchor: publicName, test: /^(?!\w)/ },
  {
    rule: 'secrets.fallback',
    kinds: ['source'],
    hint: ['process.env', 'import.meta.env'],
    anchor: new RegExp(`(?:process\\.env|import\\.meta\\.env)(?:\\.|\\[["'])\\w{0,60}(?:SECRET|PASSWORD|PRIVATE_KEY|TOKEN|SIGNING_KEY|ENCRYPTION_KEY)\\w{0,40}(?:["']\\])?`, 'g'),
    test: /^\s{0,8}(?:\|\||\?\?)\s{0,8}["'`](?!["'`])[^"'`\n$]{6,}["'`]/,
  },
  {
    rule: 'secrets.fallback',
    kinds: ['source'],
    hint: ['getenv', 'environ', 'ENV.fetch'],
    anchor: /(?:os\.getenv|os\.environ\.get|System\.getenv|ENV\.fetch)\(\s{0,4}["']\w{0,60}(?:SECRET|PASSWORD|PRIVATE_KEY|TOKEN|SIGNING_KEY|ENCRYPTION_KEY)\w{0,40}["']/g,
    test: /^\s{0,4},\s{0,4}["'][^"'\n]{6,}["']/,
  },
  { rule: 'secrets.rows', kinds: ['infra'], hint: ['rue', 'RUE'], anchor: /\b(?:using|with\s+check)\s{0,4}\(\s{0,4}true\s{0,4}\)/gi, test: /^/ },
  { rule: 'secrets.rows', kinds: ['infra'], hint: ['isable', 'ISABLE'], anchor: /\bdisable\s+row\s+level\s+security\b/gi, test: /^/ },
  { rule: 'secrets.rows', kinds: ['infra'], hint: ['rant', 'RANT'], anchor: /\bgrant\s+all\b/gi, test: /^[^\n]{0,200}\bto\s+(?:anon|public)\b/i },
  { rule: 'secrets.bucket', kinds: ['infra'], hint: ['public-read', 'allUsers', 'AuthenticatedUsers'], anchor: /["'](?:public-read(?:-write)?|allUsers|allAuthenticatedUsers)["']/g, test: /^/ },
  { rule: 'secrets.bucket', kinds: ['infra'], hint: ['buckets', 'BUCKETS'], anchor: /\binsert\s+into\s+storage\.buckets\b/gi, test: /^[^\n]{0,400}\btrue\b/i },
  { rule: 'secrets.bucket', kinds: ['source'], hint: ['createBucket'], anchor: /\bcreateBucket\s?\(/g, test: /^[^\n]{0,200}\bpublic\s?:\s?true\b/ },
  { rule: 'secrets.bucket', kinds: ['source'], hint: ['public-read'], anchor: /\bACL\s?[:=]\s?["']public-read/g, test: /^/ },
]; // prettier-ignore

/** A handler that takes a webhook's body, in a file that nowhere checks a signature. */
const webhook =
  /(?:\.(?:post|all|route)\(\s{0,4}["'`][^"'`\n]{0,80}webhook|export\s+(?:async\s+)?(?:function|const)\s+(?:POST|action)\b)/i;
const checked = /signature|constructEvent|hmac|timingSafeEqual|\bverif|svix|webhooks?\.unwrap|x-hub|secret/i;

export const secretHits = (path: string, kind: Kind, text: string, lines: Lines): Hit[] => {
  const hits = checks
    .filter(({ kinds, hint }) => kinds.includes(kind) && hint.some((word) => text.includes(word)))
    .flatMap(({ rule, anchor, test, before }) =>
      near(text, anchor, 400, before)
        .filter(({ slice }) => test.test(slice))
        .map(({ at }) => found(rule, at, lines)),
    );
  if (kind !== 'source' || !/webhook/i.test(path + text.slice(0, 20_000))) return hits;
  const handler = webhook.exec(text);
  const isWebhook = handler !== null && (/webhook/i.test(handler[0]) || /webhook/i.test(path));
  return isWebhook && !checked.test(text) ? [...hits, found('secrets.webhook', handler.index, lines)] : hits;
};

const found = (rule: RuleId, at: number, lines: Lines): Hit => {
  const line = lines.lineOf(at);
  const exact = lines.text(line);
  // Quoted words and what an env file assigns may be the secret itself.
  const evidence = exact
    .replace(/((?:\|\||\?\?|,)\s*)(["'`])[^"'`]{3,}\2/g, '$1$2•••$2')
    .replace(/^(\s*(?:export\s+)?\w+\s*=\s*).+$/, '$1•••');
  return { rule, line, exact, evidence: rule === 'secrets.bucket' || rule === 'secrets.rows' ? exact : evidence };
};
