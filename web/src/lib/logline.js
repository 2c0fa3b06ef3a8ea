// How a log record is shown. Pure.
export const LEVELS = ['debug', 'info', 'warning', 'error']
export const AUDIENCES = ['operator', 'expert', 'developer']
const SHOWN = { error: { glyph: '✖', tone: 'bad' }, warning: { glyph: '▲', tone: 'warn' }, info: { glyph: '·', tone: '' }, debug: { glyph: ' ', tone: 'quiet' } }

export function shown(level) {
  return SHOWN[level] ?? SHOWN.info
}

// The other fields of a record as text; empty fields are left out.
export function besides(fields) {
  return Object.entries(fields ?? {}).filter(([, value]) => value).map(([name, value]) => `${name}=${value}`).join(' ')
}

// The address of a search: '/api/logs?...'; empty choices are left out.
export function address(wanted) {
  return `/api/logs?${new URLSearchParams(Object.entries(wanted).filter(([, value]) => value !== '' && value != null))}`
}
