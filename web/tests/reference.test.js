// The reference of a run: the last good run, and its means.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lastGood, meanOver } from '../src/lib/reference.js'

const GOOD = { number: 7, condition: 'GOOD', first_event_ns: 100e9, stopped_ns: 110e9, seconds: 10, events: 2000 }
const NAMES = ['trigger_rate_hz', 'dead_time_fraction']

// A room that answers each path with this beginning.
const room = (answers, number = 9) => ({
  document: { time_ns: 120e9, run: { number } },
  get: async (path) => answers[path.split('?')[0]],
})

test('the newest good run is taken that is not open', async () => {
  const runs = [{ number: 9, condition: 'GOOD' }, { number: 8, condition: 'INCOMPLETE' }, GOOD]
  assert.equal((await lastGood(room({ '/api/runs': { runs } }))).number, 7)
  assert.equal(await lastGood(room({ '/api/runs': { runs: [] } })), null)
})

test('means are of the time of the run', async () => {
  const series = { time_s: [5, 15, 20, 30], values: { trigger_rate_hz: [9, 100, 200, 7], dead_time_fraction: [1, 0.1, null, 1] } }
  assert.deepEqual(await meanOver(room({ '/api/series': { series } }), GOOD, NAMES), { trigger_rate_hz: 150, dead_time_fraction: 0.1 })
})

test('what a room that was started anew does not remember is in the row, as far as it is', async () => {
  assert.deepEqual(await meanOver(room({ '/api/series': { series: {} } }), GOOD, NAMES), { trigger_rate_hz: 200, dead_time_fraction: null })
})

test('paused time does not count in the rate of triggers', async () => {
  assert.equal((await meanOver(room({ '/api/series': { series: {} } }), { ...GOOD, paused_seconds: 2 }, NAMES)).trigger_rate_hz, 250)
})
