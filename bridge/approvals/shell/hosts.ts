/** Hosts a command names, and which of them are this machine, its network, or a cloud's metadata (R-02). Pure. */
import { BlockList, isIP } from 'node:net';
import { valuesOf } from './paths.ts';
import { wordSet, type Sheet, type Word } from './sheet.ts';

const url = /\b[a-z][a-z0-9+.-]{0,30}:\/\/(?:[^\s/?#'"@]{0,300}@)?(\[[0-9a-f:.%]+\]|[^\s/?#:'"[\]@,;)}]+)/gi;
/** Every host in URLs within a text. `file:` has none. */
const hostsInUrls = (text: string): string[] =>
  [...text.matchAll(url)].filter(([whole]) => !/^file:/i.test(whole)).map((found) => found[1] ?? '');

const local = new BlockList();
for (const [net, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
] as const)
  local.addSubnet(net, bits, 'ipv4');
for (const [net, bits] of [
  ['::', 127],
  ['fc00::', 7],
  ['fe80::', 10],
] as const)
  local.addSubnet(net, bits, 'ipv6');
const localName =
  /^(localhost|ip6-localhost|instance-data|metadata|broadcasthost)$|\.(localhost|local|internal|lan|home\.arpa)$/;

/** Loopback, link-local, private, metadata; also written as a decimal, hexadecimal or octal number, and as IPv6. */
export const isPrivateHost = (host: string): boolean => {
  // The URL parser of the platform reads numbers as `curl` does.
  const parsed = URL.parse(`http://${isIP(host) === 6 ? `[${host}]` : host}/`)?.hostname;
  if (parsed === undefined) return false;
  const name = parsed.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  const version = isIP(name);
  if (version === 0) return localName.test(name);
  const mapped = /^(?:::ffff:|::|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(name);
  if (mapped === null) return local.check(name, version === 4 ? 'ipv4' : 'ipv6');
  const [high, low] = [parseInt(mapped[1] ?? '', 16), parseInt(mapped[2] ?? '', 16)];
  return local.check([high >> 8, high & 255, low >> 8, low & 255].join('.'), 'ipv4');
};

/** A word without a scheme is a host for these. */
const hostFirst = wordSet(
  'curl wget ssh scp sftp rsync nc ncat netcat telnet ftp lftp ping ping6 dig nslookup host whois traceroute mtr nmap http https xh',
);

/** Options of `curl` and its kind whose value is no host. */
const takesText =
  /^(-[a-zA-Z#]*[AbcCdDeEFHimoOPQrtTuUwWXyYzZ]|--(output|header|data[a-z-]*|json|request|user-agent|referer|user|cookie|cookie-jar|form|upload-file|max-time|write-out|retry|range|cert|key|cacert|output-dir|output-document))$/;

export const noteHosts = (sheet: Sheet, name: string, args: readonly Word[]): void => {
  const found = args.flatMap(({ value, source }) => hostsInUrls(value ?? source));
  if (name === 'git')
    for (const { value } of args) {
      const host = /^(?:[\w.-]+@)([\w.-]+):(?!\/\/)/.exec(value ?? '')?.[1];
      if (host !== undefined) found.push(host);
    }
  if (hostFirst.has(name))
    for (const [index, { value }] of args.entries()) {
      if (value === null || /^-|:\/\/|\s/.test(value) || takesText.test(args[index - 1]?.value ?? '')) continue;
      const remote = /^(?:[^@/\s]+@)?(\[[^\]]+\]|[\w.-]+):/.exec(value)?.[1];
      const bare =
        /^(?:[^@/\s]+@)?((?:[\w-]+\.)+[\w-]+|localhost|\d+|0x[0-9a-f]+|[0-9a-f]*:[0-9a-f:]+)(?=[:/?]|$)/i.exec(
          value,
        )?.[1];
      const host = /^(scp|rsync|sftp)$/.test(name) ? remote : (bare ?? remote);
      if (host !== undefined && !(/^\d+$/.test(host) && Number(host) < 65_536)) found.push(host);
    }
  if (/^(psql|mysql|mysqldump|redis-cli|mongosh)$/.test(name))
    for (const { value } of valuesOf(args, /^(-h|--host)$/)) if (value !== null) found.push(value);
  for (const host of found) noteHost(sheet, host);
};

export const noteHost = (sheet: Sheet, host: string): void => {
  const name = host.replace(/^\[|\]$/g, '');
  if (name === '') return;
  sheet.host(name);
  sheet.notes.add('network');
  if (isPrivateHost(name)) sheet.notes.add('private_host');
};
