// The bans of the house as rules: no HTML sinks, no static styles, no default exports, no imports that package.json
// does not list. Formatting is prettier's; types are tsc's.
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import { readFileSync } from 'node:fs';
import ts from 'typescript-eslint';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const listed = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies });
// esquery ends a pattern at any slash, so slashes are written as \u002F.
const escape = (name) => name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('/', '\\u002F');
/** Relative, our own aliases, Kit's, Node's, or listed. */
const unlisted = `^(?!\\.|#|\\$app\\u002F|node:|virtual:|(${listed.map(escape).join('|')})(\\u002F|$))`;

const sinks = ['innerHTML', 'outerHTML', 'srcdoc'].map((name) => ({
  selector: `AssignmentExpression > MemberExpression.left[property.name='${name}']`,
  message: `${name} is a sink for hostile text; make nodes instead.`,
}));
const bans = [
  ...sinks,
  {
    selector: 'CallExpression[callee.property.name=/^(insertAdjacentHTML|createContextualFragment)$/]',
    message: 'An HTML sink; make nodes instead.',
  },
  { selector: "CallExpression[callee.object.name='document'][callee.property.name='write']", message: 'An HTML sink.' },
  { selector: 'TSEnumDeclaration', message: 'Types are stripped, not compiled: no enums.' },
  { selector: `ImportDeclaration[source.value=/${unlisted}/]`, message: 'This package is not listed in package.json.' },
  { selector: `ImportExpression[source.value=/${unlisted}/]`, message: 'This package is not listed in package.json.' },
];
/** Svelte sets `style:x={…}` and `style={…}` through CSSOM; written out, the attribute breaks the policy. */
const staticStyle = {
  selector: "SvelteAttribute[key.name='style'] > SvelteLiteral",
  message: 'A static style attribute is refused by the content security policy; use a class.',
};
const noDefault = { selector: 'ExportDefaultDeclaration', message: 'No default exports: a thing has one name.' };

export default ts.config(
  {
    ignores: [
      'node_modules',
      'build',
      '**/.svelte-kit',
      'web/node_modules',
      'test-results',
      'bridge/agents/practice/workspace',
    ],
  },
  ...ts.configs.recommended,
  ...svelte.configs.recommended,
  {
    languageOptions: { globals: { ...globals.browser, ...globals.node } },
    rules: {
      'no-restricted-syntax': ['error', ...bans, noDefault],
      'no-eval': 'error',
      'no-implied-eval': 'error',
      'no-new-func': 'error',
      eqeqeq: 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/consistent-type-imports': ['error', { disallowTypeAnnotations: false }],
      '@typescript-eslint/no-empty-function': 'off',
      'no-control-regex': 'off',
    },
  },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: ts.parser } },
    rules: {
      'no-restricted-syntax': ['error', ...bans, noDefault, staticStyle],
      'svelte/no-at-html-tags': 'error',
      // svelte-check knows which of these comments are needed; the linter guesses at their words.
      'svelte/no-unused-svelte-ignore': 'off',
      'svelte/no-navigation-without-resolve': 'off',
      'svelte/prefer-svelte-reactivity': 'off',
    },
  },
  {
    files: ['**/*.config.{js,ts}', 'svelte.config.js', '.ci/*.js'],
    rules: { 'no-restricted-syntax': ['error', ...bans] },
  },
);
