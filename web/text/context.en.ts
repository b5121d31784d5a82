/** Sentences of what goes along with a message from the workspace (W-05). */
import type { Excerpt } from '#protocol/methods/workspace.ts';
import { formatBytes, formatCount } from './format.ts';

const count = (all: number, one: string): string => `${formatCount(all)} ${all === 1 ? one : `${one}s`}`;

export const words = {
  title: 'Add context',
  about: 'What you choose goes along as a text file. Until you send, you can look into it and remove it.',
  looking: 'Looking through the workspace…',
  untrusted:
    'This folder is not trusted: no lines of its files are proposed, and map and profile have no word from inside them.',
  review: 'Review the folder',
  excerpts: 'Excerpts for this message',
  none: 'The message names no file and no symbol of this workspace.',
  noneYet: 'Write the message first: files and symbols that it names are looked up here.',
  why: {
    named: 'named in the message',
    line: 'the line named in the message',
    defines: 'defines what the message names',
    changed: 'changed in the last turn',
  } satisfies Record<Excerpt['why'], string>,
  lines: (from: number, to: number) => (from === to ? `line ${from}` : `lines ${from}–${to}`),
  more: (files: number) => `${count(files, 'file')} looked at; there may be more to find.`,
  map: 'Map of the workspace',
  mapAbout: (folders: number, bytes: number) =>
    `${count(folders, 'folder')} with hints of what they define, ${formatBytes(bytes)}`,
  mapNames: (folders: number, bytes: number) => `${count(folders, 'folder')}, ${formatBytes(bytes)}`,
  profile: 'Profile of the workspace',
  attached: 'In this message now',
  attach: 'Attach',
  attaching: 'Attaching…',
} as const;
