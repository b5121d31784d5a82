/** Sentences over a conversation, and of how its agent is held. */
export const enforcement = {
  mediated: 'mediated',
  cooperative: 'cooperative',
  unrestricted: 'unrestricted',
  explain: {
    mediated: 'Every effect passes through the bridge and waits for a decision.',
    cooperative: 'The agent asks before it acts, and is trusted to ask.',
    unrestricted: 'The agent acts by itself. Its actions are recorded where it reports them, and cannot be held back.',
  },
} as const;
export const containment = {
  bubblewrap: 'contained',
  best_effort: 'not contained',
  explain: {
    bubblewrap: 'Runs in its own process space by bubblewrap; the bridge’s keys are hidden from it.',
    best_effort: 'Runs as an ordinary process of yours. It could read the bridge’s keys and approve for itself.',
  },
} as const;
export const header = {
  rename: 'Rename',
  renameLabel: 'Title of this conversation',
  menu: 'Conversation menu',
  archive: 'Archive',
  unarchive: 'Take out of the archive',
  copyLink: 'Copy link',
  exportMd: 'Export as Markdown',
  exportHtml: 'Export as a web page',
  exportJson: 'Export as JSON with receipts',
  closeAgent: 'Close the agent',
  restart: 'Start the agent again',
  receipts: 'Receipts',
  doNotCache: 'Do not keep offline',
  doCache: 'Keep offline again',
  remove: 'Delete…',
  removeTitle: 'Delete this conversation?',
  removeBody:
    'Its messages, attachments and recorded actions are erased from the bridge and from the offline copy. Signed receipts stay: they still prove what was decided, without showing it.',
  removeButton: 'Delete conversation',
  dock: 'Show or hide files, changes and terminals',
  agentEnded: 'The agent is not running. Your next message starts it.',
  exported: 'Export saved',
} as const;
