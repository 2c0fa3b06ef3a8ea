// Values over time from the control room (in columns, or name by name). Converts times of any clock to seconds of UTC: the newest point is now. Pure.
export function pointsOf(answer, names, nowNs) {
  const series = answer?.series ?? {}
  const columns = series.values ? names.map((name) => ({ name, t: series.time_s ?? [], v: series.values[name] ?? [] })) : names.map((name) => ({ name, t: series[name]?.t ?? [], v: series[name]?.v ?? [] }))
  const newest = Math.max(...columns.map((column) => column.t.at(-1) ?? -Infinity))
  if (newest === -Infinity) return []
  const late = nowNs / 1e9 - newest
  const at = new Map()
  for (const { name, t, v } of columns) {
    t.forEach((time, i) => at.set(time, { ...(at.get(time) ?? { t: time + late }), [name]: v[i] ?? null }))
  }
  return [...at.entries()].sort(([a], [b]) => a - b).map(([, point]) => point)
}
