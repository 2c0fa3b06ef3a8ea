// How numbers and times are written.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytes, clock, count, ending, flow, percent, plain, ppm, rate, since, span, time, UNKNOWN } from '../src/lib/format.js'
import { quantity } from '../src/lib/words.js'

const table = [
  [rate, 99_800, '99.8 kHz'], [rate, 0, '0 Hz'], [rate, 999.6, '1.00 kHz'], [rate, 412, '412 Hz'], [rate, 1.234e6, '1.23 MHz'],
  [bytes, 14e12, '14.0 TB'], [flow, 4.12e8, '412 MB/s'], [percent, 0.002, '0.20 %'], [percent, 0, '0 %'], [percent, 0.00001, '<0.01 %'], [percent, 1, '100 %'],
  [ppm, 3.14, '3.14 ppm'], [ppm, 0, '0 ppm'], [count, 1234567, '1\u202f234\u202f567'], [count, 0, '0'],
  [clock, 4353, '01:12:33'], [clock, 90061, '1 d 01:01:01'], [span, 0.42, '0.4 s'], [span, 33_480, '9.30 h'], [span, 300, '5 min'], [span, 864000, '10 d'],
  [time, 0, '00:00:00'], [ending, { status: null, signal: 9, core: null }, 'ended by signal 9 (KILL)'], [ending, { status: null, signal: 11, core: 'core.1' }, 'ended by signal 11 (SEGV), left a core file'],
  [ending, { status: 3, signal: null }, 'ended with status 3'], [plain, [1, 'a'], '1, a'], [plain, { a: true }, 'a yes'], [plain, '', UNKNOWN],
]
for (const [how, value, written] of table) test(`${how.name} of ${JSON.stringify(value)}`, () => assert.equal(how(value), written))

for (const how of [rate, bytes, flow, percent, ppm, count, clock, span, time]) {
  test(`${how.name} of what nobody knows is a dash, never 0`, () => {
    for (const unknown of [null, undefined, NaN, Infinity]) assert.equal(how(unknown), UNKNOWN)
  })
}

test('a time that lies ahead, as after a clock was set back, is no age below 0', () => {
  assert.equal(since(5e9, 3e9), 0)
  assert.equal(since(null, 3e9), null)
})

for (const [cause, value, written] of [['disk', 8.5e9, '8.50 GB'], ['dead_time', 0.031, '3.10 %'], ['stall:readout', 200, '200 Hz'], ['overdue:stop', 63, '63 s'], ['process.failed:x', 'failed', 'failed'], ['what else', 12345, '12\u202f345']]) {
  test(`${cause} ${value} has its unit`, () => assert.equal(quantity(cause, value), written))
}
