// Formats numbers and times. Unknown values (null) become a dash, never 0.
export const UNKNOWN = '–'

const known = (value) => typeof value === 'number' && Number.isFinite(value)

// Three significant digits: 99.8, 1.23, 412.
function three(value) {
  const size = Math.abs(value)
  if (size >= 99.95 || size === 0) return value.toFixed(0)
  return value.toFixed(size >= 9.995 ? 1 : 2)
}

function scaled(value, unit, prefixes) {
  let at = 0
  while (Math.abs(value) >= 999.5 && at < prefixes.length - 1) {
    value /= 1000
    at += 1
  }
  return `${three(value)} ${prefixes[at]}${unit}`
}

export function rate(hz) {
  return known(hz) ? scaled(hz, 'Hz', ['', 'k', 'M', 'G']) : UNKNOWN
}

export function bytes(count) {
  return known(count) ? scaled(count, 'B', ['', 'k', 'M', 'G', 'T', 'P']) : UNKNOWN
}

export function flow(bytesPerSecond) {
  return known(bytesPerSecond) ? `${bytes(bytesPerSecond)}/s` : UNKNOWN
}

export function percent(fraction) {
  if (!known(fraction)) return UNKNOWN
  const value = fraction * 100
  return `${value === 0 ? '0' : value < 0.01 ? '<0.01' : three(value)} %`
}

export function ppm(value) {
  if (!known(value)) return UNKNOWN
  return `${value > 0 && value < 0.01 ? '<0.01' : three(value)} ppm`
}

// Whole numbers in groups of three, with a no-break space.
export function count(value) {
  return known(value) ? Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f') : UNKNOWN
}

const two = (value) => String(value).padStart(2, '0')

// A running time: 01:12:33, with the days before it if it is longer than a day.
export function clock(seconds) {
  if (!known(seconds)) return UNKNOWN
  const whole = Math.max(0, Math.floor(seconds))
  const days = Math.floor(whole / 86400)
  return `${days ? `${days} d ` : ''}${two(Math.floor(whole / 3600) % 24)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`
}

// A length of time in its largest unit: 0.4 s, 12 s, 5 min, 9.3 h, 4 d.
export function span(seconds) {
  if (!known(seconds)) return UNKNOWN
  const value = Math.max(0, seconds)
  if (value < 10) return `${value.toFixed(1)} s`
  if (value < 120) return `${Math.round(value)} s`
  if (value < 7200) return `${Math.round(value / 60)} min`
  if (value < 172800) return `${three(value / 3600)} h`
  return `${Math.round(value / 86400)} d`
}

// The time of day in UTC, from nanoseconds.
export function time(ns) {
  return known(ns) ? new Date(ns / 1e6).toISOString().slice(11, 19) : UNKNOWN
}

export function dateTime(ns) {
  return known(ns) ? new Date(ns / 1e6).toISOString().slice(0, 19).replace('T', ' ') : UNKNOWN
}

// Seconds from one moment to a later one, both UTC in ns.
export function since(ns, nowNs) {
  return known(ns) && known(nowNs) ? Math.max(0, (nowNs - ns) / 1e9) : null
}

const SIGNALS = { 1: 'HUP', 2: 'INT', 3: 'QUIT', 4: 'ILL', 6: 'ABRT', 7: 'BUS', 8: 'FPE', 9: 'KILL', 11: 'SEGV', 13: 'PIPE', 15: 'TERM', 24: 'XCPU', 25: 'XFSZ', 31: 'SYS' }

// How a process ended, in words.
export function ending(exit) {
  if (!exit) return ''
  if (known(exit.signal)) return `ended by signal ${exit.signal}${SIGNALS[exit.signal] ? ` (${SIGNALS[exit.signal]})` : ''}${exit.core ? ', left a core file' : ''}`
  return known(exit.status) ? `ended with status ${exit.status}` : 'ended'
}

// Any value of a table or a tree on one line.
export function plain(value) {
  if (value === null || value === undefined || value === '') return UNKNOWN
  if (Array.isArray(value)) return value.length ? value.map(plain).join(', ') : UNKNOWN
  if (typeof value === 'object') return Object.entries(value).map(([name, each]) => `${name} ${plain(each)}`).join(', ') || UNKNOWN
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'number' && !Number.isInteger(value)) return Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 0.001) ? value.toPrecision(4) : String(Number(value.toPrecision(6)))
  return String(value)
}
