// Tables of cases for the picture of the data's path, for links, log lines and rings.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { farmRows, wayOf, recording, toDisk } from '../src/lib/way.js'
import { address, besides, shown } from '../src/lib/logline.js'
import { linkOf, summary } from '../src/lib/links.js'
import { headlineOf } from '../src/lib/words.js'
import { pointsOf } from '../src/lib/series.js'

const process = (name, kind, phase = 'running', rate = null) => ({ name, class: name.replace(/-\d+$/, ''), kind, phase, role: 'essential', numbers: { rate_hz: rate, fill: null } })
const system = (limited_by, ...processes) => ({ state: 'RUNNING', limited_by, processes })
const chain = [process('readout-1', 'readout', 'running', 99), process('readout-2', 'readout', 'failed'), process('router', 'router'), process('cards', 'emulator'), process('camera', 'program')]

test('classes stand in the order of the data, programs beside them', () => {
  const way = wayOf(system(null, ...chain))
  assert.deepEqual(way.stages.map((stage) => stage.boxes.map((box) => box.name)), [['cards'], ['router'], ['readout']])
  assert.deepEqual(way.others.map((box) => box.name), ['camera'])
})

test('a class tells how many of it are well, and of which rates', () => {
  const [box] = wayOf(system(null, ...chain)).stages[2].boxes
  assert.deepEqual([box.good, box.total, box.bad.map((each) => each.name), box.rate], [1, 2, ['readout-2'], { least: 99, most: 99 }])
})

test('an absent process is not well, and a class says how many it needs', () => {
  const [box] = wayOf({ state: 'OFF', limited_by: null, processes: [{ ...process('node-1', 'node', 'absent'), role: 'at_least', needed: 1 }] }).stages[0].boxes
  assert.deepEqual([box.good, box.total, box.needed], [0, 1, 1])
})

test('cards and routers are well if they are ready: they live longer than a run', () => {
  const of = (kind, state) => wayOf({ state, limited_by: null, processes: [process(kind, kind, 'ready')] }).stages[0].boxes[0].good
  assert.deepEqual([of('emulator', 'PAUSED'), of('router', 'RUNNING'), of('readout', 'RUNNING'), of('emulator', 'OFF')], [1, 1, 0, 1])
})

test('what the run continues without is neither well nor in a rate', () => {
  const processes = [process('readout-1', 'readout', 'running', 99), { ...process('readout-2', 'readout', 'running', 0), left_out: true }]
  const [box] = wayOf(system(null, ...processes)).stages[0].boxes
  assert.deepEqual([box.good, box.total, box.rate], [1, 2, { least: 99, most: 99 }])
})

test('what holds the data up is drawn where it is: at its process, or at the files', () => {
  const slow = wayOf(system({ process: 'router', stage: 'waits for rod' }, ...chain))
  assert.equal(slow.stages[1].boxes[0].limited.stage, 'waits for rod')
  assert.equal(slow.files.limited, null)
  assert.equal(wayOf(system({ process: 'readout-1', stage: 'file_writer' }, ...chain)).files.limited.process, 'readout-1')
  assert.equal(wayOf(system({ process: 'readout-1', stage: 'processor' }, ...chain)).stages[2].boxes[0].limited.stage, 'processor')
  assert.equal(wayOf(system({ process: 'elsewhere', stage: 'builder' }, ...chain)).strange.process, 'elsewhere')
})

test('the largest word is the headline, with a shape and a colour that no state has', () => {
  const blocked = headlineOf('RUNNING', { word: 'NO DATA', severity: 'alarm', cause: null })
  assert.deepEqual([blocked.word, blocked.shape, blocked.tone], ['NO DATA', 'NO DATA', 'bad'])
  const losing = headlineOf('RUNNING', { word: 'LOSES DATA', severity: 'warning', cause: null })
  assert.deepEqual([losing.word, losing.shape, losing.tone], ['LOSES DATA', 'LOSES', 'warn'])
  assert.deepEqual([headlineOf('RUNNING', { word: 'RUNNING', severity: 'good' }).tone, headlineOf('STALE', { word: 'NO DATA', severity: 'alarm' }).word], ['good', 'STALE'])
})

const farm = [process('supervisor', 'supervisor'), process('node-1', 'node'), process('node-2', 'node'), process('recorder', 'recorder')]

test('a farm stands behind the readouts, and what it says of its nodes is drawn there', () => {
  const way = wayOf(system({ process: 'supervisor', stage: 'filter nodes' }, ...chain, ...farm))
  assert.deepEqual(way.stages.map((stage) => stage.kind), ['emulator', 'router', 'readout', 'supervisor', 'node', 'recorder'])
  assert.deepEqual(way.stages.map((stage) => stage.boxes[0].limited?.stage), [undefined, undefined, undefined, undefined, 'filter nodes', undefined])
  assert.equal(wayOf(system({ process: 'supervisor', stage: 'readout-1.hlt' }, ...chain, ...farm)).stages[3].boxes[0].limited.stage, 'readout-1.hlt')
})

test('what became of events stands at its stage; what is not as it should be has a tone', () => {
  const numbers = { farm: { in: 9, accepted: 2, rejected: 5, debug: 1, partial: 1, reassigned: 0, readout_died: 0, under_way: 1, recorded: null, lumi_block: 4 } }
  const rows = (kind) => farmRows(kind, { numbers }).map((row) => [row.name, row.value, row.tone])
  assert.deepEqual(rows('supervisor'), [['accepted', 2, 'quiet'], ['rejected', 5, 'quiet'], ['under way', 1, 'quiet']])
  assert.deepEqual(rows('node'), [['partial', 1, 'warn'], ['assigned again', 0, 'quiet'], ['debug', 1, 'warn']])
  assert.deepEqual(rows('recorder'), [['recorded', null, 'quiet'], ['luminosity block', 4, 'quiet']])
  assert.deepEqual([rows('router'), farmRows('node', { numbers: { farm: null } }), farmRows('node', {})], [[], [], []])
})

for (const [what, run, numbers, word] of [
  ['no run', null, {}, 'no run'],
  ['not known', {}, { recording: null }, '–'],
  ['no files', {}, { recording: false }, 'NOT recorded'],
  ['files that were not flushed so far', {}, { recording: true, bytes_written: 0 }, 'REC nothing written yet'],
  ['files', {}, { recording: true, bytes_written: 7 }, 'REC'],
]) {
  test(`recording: ${what}`, () => assert.equal(recording({ run, numbers }).word, word))
}

test('a recording is good only while the run takes data', () => {
  const of = (word) => recording({ run: { number: 1 }, numbers: { recording: true, bytes_written: 7 }, headline: { word } }).tone
  assert.deepEqual(['RUNNING', 'LOSES DATA', 'NO DATA'].map(of), ['good', 'good', 'warn'])
})

test('the speed of the disk is not known before the first flush', () => {
  const of = (bytes_written, recording = true) => toDisk({ recording, bytes_written, bytes_written_per_second: 0 })
  assert.deepEqual([of(0), of(null), of(7), of(0, false)], [null, null, 0, 0])
})

for (const [link, word] of [
  [{ state: 'active', chunks: 9, missing: 0, bad: 0 }, 'good'], [{ state: 'active', chunks: 9, missing: 1, bad: 0 }, 'missing'], [{ state: 'active', chunks: 9, missing: 1, bad: 1 }, 'bad data'],
  [{ state: 'removed', chunks: 9 }, 'removed'], [{ state: 'active', chunks: 0 }, 'no data yet'], [{ state: 'odd', chunks: 1 }, 'odd'],
  [{ state: 'active', chunks: 9, missing: 1, out_of_step: true, bcid_offset: 5 }, 'out of step'], [{ state: 'active', chunks: 9, in_doubt: 2 }, 'in doubt'],
]) {
  test(`a link that is ${word}`, () => assert.equal(linkOf(link).word, word))
}

test('links are counted by what they are', () => assert.deepEqual(summary([{ state: 'removed' }, { state: 'active', chunks: 1 }, { state: 'active', chunks: 2 }]), { removed: 1, good: 2 }))

test('of what is looked for in logs only what was chosen is asked', () => {
  assert.equal(address({ lines: 20, process: '', search: 'a b&c', run: '7', level: '', audience: null }), '/api/logs?lines=20&search=a+b%26c&run=7')
})
test('what a log line says besides its message', () => assert.equal(besides({ code: 'card.gone', next: '' }), 'code=card.gone'))
test('a level that nobody knows is shown', () => assert.equal(shown('loud').glyph, shown('info').glyph))

for (const [what, series] of [['by name', { a: { t: [1, 2], v: [5, null] } }], ['in columns', { time_s: [1, 2], values: { a: [5, null] } }]]) {
  test(`a ring ${what}, of any clock, ends now`, () => assert.deepEqual(pointsOf({ series }, ['a'], 100e9), [{ t: 99, a: 5 }, { t: 100, a: null }]))
}
test('an empty ring has no points', () => assert.deepEqual(pointsOf({ series: {} }, ['a'], 1), []))
