/**
 * Walks a command into a sheet: shell text through the parser, argv as it is, trampolines resolved. The rule not to
 * break: never less than a shell would run; any error of the parser ends the reading of its text. Nothing is run or
 * expanded. Called by `reading.ts`, which catches `TooMuch`.
 */
import { posix } from 'node:path';
import { forEachChild, parse } from 'unbash';
import type {
  CommandArgument,
  CommandNode,
  Redirection,
  Script,
  Statement,
  SyntaxNode,
  Word as ParsedWord,
} from 'unbash';
import { limits } from '#protocol/limits.ts';
import { noteHost } from './hosts.ts';
import { noteScript } from './paths.ts';
import { noteProgram, privileges } from './programs.ts';
import { type Sheet, systemFolders, TooMuch, type Scope, type Word } from './sheet.ts';
import type { Dialect, Inner } from './inner.ts';
import { trampolines } from './trampolines.ts';
import { plainWords, wordOf } from './words.ts';

const definesFolder = /\b(cd|pushd|popd)\b/;

export class Reader {
  readonly #sheet: Sheet;
  #nodes = 0;
  /** Text parsed so far, each `eval` and `sh -c` anew. */
  #units = 0;

  constructor(sheet: Sheet) {
    this.#sheet = sheet;
  }

  // ---- Programs

  run(words: readonly Word[], scope: Scope, isShell: boolean): void {
    const [first, ...args] = words;
    if (first === undefined) return;
    if (scope.depth > limits.readingDepth) throw new TooMuch();
    const name = first.value;
    if (name === null) {
      this.#sheet.program(null, args, scope.via);
      this.#sheet.blind('The name of a program is only known when it runs.');
      return;
    }
    if (name === '') this.#sheet.blind('A command has an empty name.');
    const base = posix.basename(name);
    const resolve = Object.hasOwn(trampolines, base) ? trampolines[base] : undefined;
    const inner: readonly Inner[] = resolve?.(args, base) ?? [{ is: 'self' }];
    // A program that only bears the name of a known one is a program of its own.
    const isOwn = name.includes('/') && !systemFolders.test(name);
    if (isOwn || inner.some(({ is }) => is === 'self')) {
      this.#sheet.program(name, args, scope.via);
      // What is given to another machine or a container names nothing here.
      const elsewhere = inner.find((each) => each.is === 'argv' && each.elsewhere === true);
      const taken = elsewhere?.is === 'argv' ? elsewhere.words.length : 0;
      noteProgram(this.#sheet, name, args.slice(0, args.length - taken), scope, isShell);
    } else if (privileges.has(base)) this.#sheet.notes.add('privileged');
    for (const each of inner) this.#inner(each, base, scope, isShell);
  }

  #inner(inner: Inner, name: string, outer: Scope, isShell: boolean): void {
    const sheet = this.#sheet;
    const scope = { ...outer, via: [...outer.via, name], depth: outer.depth + 1 };
    switch (inner.is) {
      case 'self':
        return;
      case 'blind':
        return sheet.blind(inner.why);
      case 'assignment':
        return sheet.assignment(inner.name);
      case 'host':
        return noteHost(sheet, inner.name);
      case 'fetch':
        sheet.notes.add('network');
        return sheet.installs({
          manager: name,
          packages: inner.package === '' ? [] : [inner.package],
          global: false,
          scripts: true,
        });
      case 'argv': {
        const { cwd } = inner;
        if (inner.script === true && inner.words[0] !== undefined) noteScript(sheet, inner.words[0], outer);
        if (cwd !== undefined) {
          if (sheet.path(cwd, outer) !== 'inside') sheet.notes.add('moves_target');
          scope.cwds = moved(outer.cwds, cwd);
        }
        return this.run(
          inner.words,
          { ...scope, elsewhere: outer.elsewhere || inner.elsewhere === true },
          isShell && /^(command|builtin|exec)$/.test(name),
        );
      }
      case 'text': {
        if (inner.text.value === null) {
          sheet.program(name, [inner.text], outer.via);
          return sheet.blind(`The text that ${name} runs is only known when it runs.`);
        }
        const remote = outer.elsewhere || inner.elsewhere === true;
        const own = /^(eval|trap)$/.test(name) ? outer : undefined;
        this.text(inner.text.value, own === undefined ? { ...scope, elsewhere: remote } : scope, inner.dialect);
        // `eval cd x` moves the shell that evaluates it.
        if (own !== undefined && definesFolder.test(inner.text.value)) own.cwds = [null];
      }
    }
  }

  // ---- Shell text

  text(text: string, scope: Scope, dialect: Dialect): void {
    this.#units += text.length;
    if (scope.depth > limits.readingDepth || this.#units > 4 * limits.ruleTextUnits) throw new TooMuch();
    // The parser looks for the end of every here-document.
    if (text.split('<<').length > limits.readingDocuments) throw new TooMuch();
    if (dialect === 'other' && plainWords(text) === null)
      this.#sheet.blind('The shell that runs this may read it in another way than it is read here.');
    if (text.includes('\0')) return this.#sheet.blind('Contains a NUL character, where programs may see its end.');
    if (dialect !== 'bash' && /\$'(?:[^'\\]|\\[^'])*\\'/.test(text))
      this.#sheet.blind('A quote in this text ends at another place for some shells.');
    this.#script(parse(text), text, scope, dialect);
  }

  #script(
    script: Script & { readonly errors?: readonly { readonly message: string }[] | undefined },
    text: string,
    scope: Scope,
    dialect: Dialect,
  ): void {
    if (scope.depth > limits.readingDepth) throw new TooMuch();
    const [error] = script.errors ?? [];
    if (error !== undefined) return this.#sheet.blind(`This is no shell text that can be parsed: ${error.message}.`);
    this.#statements(script.commands, script.source ?? text, scope, dialect);
  }

  #statements(statements: readonly Statement[], text: string, scope: Scope, dialect: Dialect): void {
    statements.forEach((statement, index) => {
      const before = scope.cwds;
      const own = statement.background === true ? { ...scope } : scope;
      this.#command(statement.command, text, own, dialect);
      // The last `cd` may have failed.
      scope.cwds = union(before, scope.cwds);
      const next = statements[index + 1];
      const between = text.slice(statement.command.end, next?.pos ?? statement.end);
      if (statement.background === true) this.#sheet.operator('&');
      else if (next !== undefined) this.#sheet.operator(/[\r\n]/.test(between) ? 'newline' : ';');
      else if (between.includes(';')) this.#sheet.operator(';');
    });
  }

  #list(statements: readonly Statement[], text: string, scope: Scope, dialect: Dialect, isRepeated: boolean): void {
    const [first] = statements;
    const body = text.slice(first?.pos ?? 0, statements.at(-1)?.end ?? 0);
    if (isRepeated && definesFolder.test(body)) scope.cwds = [null];
    this.#statements(statements, text, scope, dialect);
  }

  #command(node: Statement['command'], text: string, scope: Scope, dialect: Dialect): void {
    this.#count();
    const sheet = this.#sheet;
    const inside = (list: { readonly commands: readonly Statement[] }, own = scope, isRepeated = false): void =>
      this.#list(list.commands, text, own, dialect, isRepeated);
    switch (node.type) {
      case 'AndOr':
        node.commands.forEach((each, index) => {
          if (index > 0) sheet.operator(node.operators[index - 1] ?? '&&');
          const before = scope.cwds;
          this.#command(each, text, scope, dialect);
          if (node.operators[index] === '||') scope.cwds = union(before, scope.cwds);
        });
        return;
      case 'Pipeline': {
        const isTimed = node.prefixes.some(({ type }) => type === 'Time');
        const own = isTimed ? { ...scope, via: [...scope.via, 'time'] } : scope;
        const [timed] = node.commands;
        if (isTimed && dialect !== 'bash' && timed?.type === 'Command' && /^['"\\$-]/.test(timed.name?.text ?? '-'))
          sheet.blind('Not every shell has `time` as a word of its own.');
        for (const { type } of node.prefixes) if (type === 'Negation') sheet.operator('!');
        node.commands.forEach((each, index) => {
          if (index > 0) sheet.operator(node.operators[index - 1] ?? '|');
          // In zsh the last command of a pipe moves the shell itself.
          const before = scope.cwds;
          const piped = node.commands.length === 1 ? own : { ...own };
          this.#command(each, text, piped, dialect);
          scope.cwds = union(before, piped.cwds);
        });
        return;
      }
      case 'Command':
        return this.#simple(node, text, scope, dialect);
      case 'Redirected':
        this.#command(node.command, text, scope, dialect);
        return this.#redirections(node.redirects, text, scope, dialect);
      case 'Subshell':
        sheet.operator('subshell');
        return inside(node.body, { ...scope });
      case 'BraceGroup':
        sheet.operator('group');
        return inside(node.body);
      case 'If':
        sheet.operator('if');
        inside(node.clause);
        inside(node.then);
        for (const branch of node.elif) {
          inside(branch.clause);
          inside(branch.then);
        }
        if (node.else !== undefined) inside(node.else);
        return;
      case 'For':
      case 'Select':
        sheet.operator('for');
        for (const each of node.wordlist ?? []) this.#expansions(each, text, scope, dialect);
        return inside(node.body, scope, true);
      case 'ArithmeticFor':
        sheet.operator('for');
        sheet.evaluates = true;
        for (const each of [node.initialize, node.test, node.update])
          if (each !== undefined) this.#expansions(each, text, scope, dialect);
        return inside(node.body, scope, true);
      case 'While':
        sheet.operator('while');
        inside(node.clause, scope, true);
        return inside(node.body, scope, true);
      case 'Case':
        sheet.operator('case');
        this.#expansions(node.word, text, scope, dialect);
        for (const item of node.items) {
          for (const pattern of item.pattern) this.#expansions(pattern, text, scope, dialect);
          inside(item.body);
        }
        return;
      case 'Function':
      case 'Coproc':
        sheet.operator(node.type === 'Function' ? 'function' : 'coproc');
        if (node.body.type === 'CompoundList') return inside(node.body, scope, true);
        // A function runs where it is called.
        if (definesFolder.test(text)) scope.cwds = [null];
        return this.#command(node.body, text, scope, dialect);
      case 'TestCommand':
        sheet.operator('[[');
        if (dialect !== 'bash' && /&&|\|\||[()<>]/.test(text.slice(node.pos, node.end)))
          sheet.blind('Some shells read what is within [[ ]] as commands.');
        return this.#expansions(node, text, scope, dialect);
      case 'ArithmeticCommand':
        sheet.operator('((');
        sheet.evaluates = true;
        if (dialect !== 'bash') sheet.blind('Some shells read what is within (( )) as commands.');
        return this.#expansions(node, text, scope, dialect);
    }
  }

  #simple(node: Extract<CommandNode, { type: 'Command' }>, text: string, scope: Scope, dialect: Dialect): void {
    const sheet = this.#sheet;
    const children: SyntaxNode[] = [];
    for (const each of node.prefix)
      if (each.type === 'Assignment') {
        sheet.assignment(each.name);
        if (each.index !== undefined) sheet.evaluates = true;
        if (dialect !== 'bash' && (each.index !== undefined || each.append === true) && each.text.includes('/'))
          sheet.blind('Some shells read this assignment as the path of a program.');
        children.push(each);
      }
    const words: Word[] = [];
    if (node.name !== undefined) {
      words.push(wordOf(node.name), ...node.args.map(argumentOf));
      children.push(node.name, ...node.args);
    }
    for (const { value } of words.slice(1)) if (value !== null && /\$\(|`|\$\{/.test(value)) sheet.dormant = true;
    if (words[0]?.value === 'cd' || words[0]?.value === 'pushd' || words[0]?.value === 'popd') {
      sheet.program(words[0].value, words.slice(1), scope.via);
      this.#changeFolder(words, scope);
    } else this.run(words, scope, true);
    const both = node.redirects.find(({ operator }) => operator.startsWith('&'));
    if (
      dialect !== 'bash' &&
      both !== undefined &&
      node.suffix.some(({ type, pos }) => pos > both.pos && /^(Word|Assignment)$/.test(type))
    )
      sheet.blind('Some shells start another command after &>.');
    this.#redirections(node.redirects, text, scope, dialect);
    for (const child of children) this.#expansions(child, text, scope, dialect);
  }

  #changeFolder([name, ...args]: readonly Word[], scope: Scope): void {
    const operands = args.filter(({ value }) => value === null || !/^-[LPe@]+$|^--$/.test(value));
    const [target] = operands;
    if (name?.value === 'popd' || target === undefined || operands.length > 1 || /^[-+]/.test(target.value ?? '')) {
      // Home, or a folder from before.
      if (target === undefined && name?.value === 'cd') this.#sheet.path({ value: null, source: '~' }, scope);
      scope.cwds = [null];
      return;
    }
    this.#sheet.path(target, scope);
    scope.cwds = moved(scope.cwds, target);
  }

  #redirections(redirections: readonly Redirection[], text: string, scope: Scope, dialect: Dialect): void {
    const sheet = this.#sheet;
    for (const each of redirections) {
      if (each.type !== 'Redirect') {
        sheet.hereDocuments += 1;
        // Shells disagree where a document with an odd end mark ends, and so what comes after it.
        if (each.type === 'HereDoc' && !/^[\w.'"\\+-]+$/.test(each.delimiter?.text ?? ''))
          sheet.blind('The end mark of a here-document is not plain.');
        if (each.type === 'HereDoc' && each.closing === undefined) sheet.blind('A here-document has no end.');
        // A script may read it into a variable.
        if (each.type === 'HereDoc' && /\$\(|`|\$\{/.test(each.body.text)) sheet.dormant = true;
        this.#expansions(each, text, scope, dialect);
        continue;
      }
      const target = each.target === undefined ? { value: null, source: '' } : wordOf(each.target);
      if (each.descriptor?.type === 'FileDescriptorVariable') sheet.assignment(each.descriptor.name);
      const isDescriptor = each.operator.includes('&') && /^(\d+-?|-)$/.test(target.value ?? '');
      const socket = /^\/dev\/(?:tcp|udp)\/([^/]+)\//.exec(target.value ?? target.source)?.[1];
      if (socket !== undefined) noteHost(sheet, socket);
      const place = isDescriptor || /^\/dev\//.test(target.value ?? '') ? 'device' : sheet.placeOf(target, scope);
      sheet.redirection({ operator: each.operator, target: target.value, place });
      if (place !== 'device') sheet.path(target, scope);
      if (each.target !== undefined) this.#expansions(each.target, text, scope, dialect);
    }
  }

  /** Commands within words: substitutions, however deep, and what evaluates text again. */
  #expansions(node: SyntaxNode, text: string, scope: Scope, dialect: Dialect): void {
    this.#count();
    const sheet = this.#sheet;
    switch (node.type) {
      case 'CommandExpansion':
      case 'ProcessSubstitution':
      case 'ArithmeticCommandExpansion': {
        const isBackquote = node.text.startsWith('`');
        sheet.substitution(isBackquote ? node.text.slice(1, -1) : node.text.slice(2, -1));
        if (node.script === undefined) return sheet.blind('A substitution cannot be parsed.');
        return this.#script(node.script, text, { ...scope, depth: scope.depth + 1 }, dialect);
      }
      case 'ParameterExpansion': {
        const kind = node.operation?.type;
        if (node.prefix === '!' || kind === 'Transform' || kind === 'Unknown' || kind === 'Slice')
          sheet.evaluates = true;
        if (node.index !== undefined && !/^(\d+|[@*])$/.test(node.index.text)) sheet.evaluates = true;
        if (
          (kind === 'Transform' && /@P\}$/.test(node.text)) ||
          kind === 'Unknown' ||
          !/^(\w+|[@*#?$!-])$/.test(node.parameter)
        )
          sheet.blind('An expansion in this text may run what a variable holds.');
        break;
      }
      case 'ArithmeticExpansion':
      case 'ArithmeticCommand':
        sheet.evaluates = true;
        break;
      case 'TestBinary':
        if (/^-(eq|ne|lt|le|gt|ge)$/.test(node.operator)) sheet.evaluates = true;
        break;
      case 'TestUnary':
        if (/^-[vR]$/.test(node.operator)) sheet.evaluates = true;
        break;
      case 'Literal':
      case 'SingleQuoted':
      case 'AnsiCQuoted':
        if (/\$\(|`|\$\{/.test(node.value)) sheet.dormant = true;
        break;
    }
    forEachChild(node, (child) => this.#expansions(child, text, scope, dialect));
  }

  #count(): void {
    this.#nodes += 1;
    if (this.#nodes > limits.readingNodes) throw new TooMuch();
  }
}

const argumentOf = (argument: CommandArgument): Word => {
  if (argument.type === 'Word') return wordOf(argument);
  const { value } = argument;
  const isPlain = value.type === 'Word' && argument.index === undefined;
  const known = isPlain ? wordOf(value as ParsedWord).value : null;
  return {
    value: known === null ? null : `${argument.name}${argument.append === true ? '+' : ''}=${known}`,
    source: argument.text,
  };
};

const moved = (cwds: readonly (string | null)[], to: Word): readonly (string | null)[] =>
  to.value === null
    ? [null]
    : cwds.map((cwd) =>
        posix.isAbsolute(to.value ?? '') ? to.value : cwd === null ? null : posix.resolve(cwd, to.value ?? ''),
      );

const union = (some: readonly (string | null)[], more: readonly (string | null)[]): readonly (string | null)[] => {
  if (some === more) return some;
  const all = [...new Set([...some, ...more])];
  return all.length > 8 ? [null] : all;
};
