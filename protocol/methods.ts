/**
 * The API: one sorted table (a test keeps it sorted). The bridge answers nothing that is not here, a client asks
 * nothing that is not here, and both parse what they get with the same schemas.
 */
import { approvalMethods } from './methods/approval.ts';
import { connectionMethods } from './methods/connection.ts';
import { conversationMethods } from './methods/conversation.ts';
import { gitMethods } from './methods/git.ts';
import type { Method } from './methods/method.ts';
import { policyMethods } from './methods/policy.ts';
import { receiptMethods } from './methods/receipt.ts';
import { terminalMethods } from './methods/terminal.ts';
import { trustMethods } from './methods/trust.ts';
import { workspaceMethods } from './methods/workspace.ts';
import { worktreeMethods } from './methods/worktree.ts';
import type { z } from './schema.ts';

export const methods = {
  ...conversationMethods,
  ...approvalMethods,
  ...policyMethods,
  ...receiptMethods,
  ...connectionMethods,
  ...workspaceMethods,
  ...gitMethods,
  ...terminalMethods,
  ...trustMethods,
  ...worktreeMethods,
} as const satisfies Record<string, Method>;

export type MethodName = keyof typeof methods;
export type Params<M extends MethodName> = z.infer<(typeof methods)[M]['params']>;
export type Answer<M extends MethodName> = z.infer<(typeof methods)[M]['result']>;
export const isMethod = (name: string): name is MethodName => Object.hasOwn(methods, name);
export const methodNames = Object.keys(methods).sort() as readonly MethodName[];
