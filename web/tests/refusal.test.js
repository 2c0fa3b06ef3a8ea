// Why commands are refused at this page: cases by name.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refusal, refusesAll } from '../src/lib/refusal.js'

const ana = { name: 'ana', role: 'shifter' }
const document = { lease: { holder: null }, commands: { launch: null, start: 'nothing is ready', stop: 'no run is open', abort: null } }
const held = { ...document, lease: { holder: 'bob' } }

for (const [what, name, given, reason] of [
  ['allowed', 'launch', { document, session: ana }, null],
  ['the room says why not', 'start', { document, session: ana }, 'nothing is ready'],
  ['a room that is not heard', 'launch', { document, session: ana, stale: true }, 'the control room does not answer'],
  ['no document so far', 'launch', { document: null, session: ana }, 'the control room does not answer'],
  ['a viewer', 'stop', { document, session: { name: 'v', role: 'viewer' } }, 'you may look only: your role is viewer'],
  ['abort of a shifter', 'abort', { document, session: ana }, 'needs the role expert; yours is shifter'],
  ['abort of an expert', 'abort', { document, session: { name: 'e', role: 'expert' } }, null],
  ["another one's control", 'launch', { document: held, session: ana }, 'bob has control: ask for it'],
  ['stop needs no control', 'stop', { document: { ...held, commands: {} }, session: ana }, null],
  ['my own control', 'launch', { document: held, session: { name: 'bob', role: 'shifter' } }, null],
  ['it is under way', 'launch', { document, session: ana, asked: 'launch' }, 'launch was asked for; it is under way'],
]) {
  test(what, () => assert.equal(refusal(name, { stale: false, asked: null, ...given }), reason))
}

test('what refuses all commands alike is said once', () => {
  assert.equal(refusesAll({ document, session: ana, stale: false }), null)
  assert.match(refusesAll({ document, session: { role: 'viewer' }, stale: false }), /viewer/)
})
