// States, phases, conditions: each has glyph, colour and meaning, so that colour is never the only sign.
import { bytes, count, percent, plain, ppm, rate, span } from './format.js'

export const STATES = {
  OFF: { tone: 'idle', means: 'nothing runs' },
  LAUNCHING: { tone: 'busy', means: 'processes are starting' },
  READY: { tone: 'ready', means: 'all processes are ready; no run is open' },
  STARTING: { tone: 'busy', means: 'a run is beginning' },
  RUNNING: { tone: 'good', means: 'data are being taken' },
  PAUSED: { tone: 'warn', means: 'the trigger is held; the run is open' },
  STOPPING: { tone: 'busy', means: 'the run is ending in order' },
  CLOSING: { tone: 'busy', means: 'processes are ending' },
  ERROR: { tone: 'bad', means: 'an operator must find the fault; `recover` leaves this state' },
  STALE: { tone: 'stale', means: 'the control room does not answer; the values are old' },
}

// Words for the quality of the data: the word of the state, or one of these.
export const HEADLINES = {
  'NO DATA': 'no event is built, or triggers are held for a process that is gone',
  'NO TRIGGERS': 'no trigger is offered, and triggers are not held',
  'LOSES DATA': 'events are incomplete or lack fragments, chunks are lost, a link is silent, a readout builds nothing, or a process that the run needs is gone',
  'LOSES TRIGGERS': 'dead time takes more triggers than its alarm allows',
}
const TONES = { idle: 'idle', ready: 'ready', busy: 'busy', good: 'good', warning: 'warn', alarm: 'bad' }

// {word, shape, tone, means} of the newest document; `state` is that of the control room, or STALE without an answer.
export function headlineOf(state, headline) {
  const own = STATES[state] ?? { tone: 'stale', means: '' }
  if (state === 'STALE' || !headline || headline.word in STATES) return { word: state, shape: state, tone: own.tone, means: own.means }
  return { word: headline.word, shape: headline.severity === 'alarm' ? 'NO DATA' : 'LOSES', tone: TONES[headline.severity] ?? 'stale', means: HEADLINES[headline.word] ?? '' }
}

export const PHASES = {
  absent: { glyph: '○', tone: 'idle' },
  launching: { glyph: '◔', tone: 'busy' },
  ready: { glyph: '◆', tone: 'ready' },
  running: { glyph: '▶', tone: 'good' },
  draining: { glyph: '▼', tone: 'busy' },
  done: { glyph: '✓', tone: 'idle' },
  failed: { glyph: '✖', tone: 'bad' },
  lost: { glyph: '?', tone: 'bad' },
}

export const FLAGS = {
  DEGRADED: 'a process or a link is missing, and the run continues without it',
  OVERDUE: 'a command takes longer than its limit',
  BLIND: 'a host does not answer; its processes probably continue',
}

export function phase(name) {
  return PHASES[name] ?? { glyph: '·', tone: 'idle' }
}

// How a run ended: the condition of its report.
export function condition(name) {
  const upper = String(name ?? '').toUpperCase()
  if (upper === 'GOOD') return { glyph: '✓', tone: 'good' }
  if (upper === 'INCOMPLETE') return { glyph: '▲', tone: 'warn' }
  return upper ? { glyph: '✖', tone: 'bad' } : { glyph: '·', tone: 'idle' }
}

const QUANTITIES = [
  [/^disk$/, bytes],
  [/^(disk\.time|overdue)/, span],
  [/^dead_time/, percent],
  [/^(incomplete|partial)/, ppm],
  [/^(stall|no_triggers)/, rate],
  [/^clock/, (value) => `${(value * 1000).toFixed(1)} ms`],
  [/^temperature/, (value) => `${value.toFixed(0)} °C`],
]

// Value or limit of an alarm, in the unit of its cause.
export function quantity(cause, value) {
  if (typeof value !== 'number') return plain(value)
  const known = QUANTITIES.find(([causes]) => causes.test(cause))
  return known ? known[1](value) : Number.isInteger(value) ? count(value) : plain(value)
}

export const ALARMS = { alarm: { glyph: '■', tone: 'bad' }, warning: { glyph: '▲', tone: 'warn' } }
