// The last good run and its numbers, for comparison with the present run.
import { pointsOf } from './series.js'

// The row of the newest run that ended GOOD, or null.
export async function lastGood(room) {
  const { runs } = await room.get('/api/runs?limit=20')
  const open = room.document?.run?.number
  return runs.find((run) => run.number !== open && isGood(run)) ?? null
}

function isGood(run) {
  return String(run?.condition ?? '').toUpperCase() === 'GOOD'
}

// Means of series over the time of a run, {name: number or null}; null for values that the server no longer has. The rate of triggers also follows
// from the run's row: in a GOOD run, all accepted triggers were built.
export async function meanOver(room, run, names) {
  const from = (run.first_event_ns ?? run.asked_ns) / 1e9
  const to = run.stopped_ns / 1e9
  const now = room.document.time_ns / 1e9
  const back = Math.ceil(now - from) + 5
  const out = Object.fromEntries(names.map((name) => [name, null]))
  const took = run.seconds - (run.paused_seconds ?? 0)
  if (names.includes('trigger_rate_hz') && run.events && took > 0) out.trigger_rate_hz = run.events / took
  if (!(from < to) || back > 86400) return out
  const points = pointsOf(await room.get(`/api/series?names=${names.join(',')}&seconds=${Math.max(1, back)}`), names, room.document.time_ns)
  for (const name of names) {
    const within = points.filter((point) => point.t > from && point.t <= to).map((point) => point[name]).filter((value) => typeof value === 'number')
    if (within.length) out[name] = within.reduce((a, b) => a + b, 0) / within.length
  }
  return out
}
