// How a log record is shown. Pure.
export const LEVELS = ['debug', 'info', 'warning', 'error']
export const AUDIENCES = ['operator', 'expert', 'developer']
const SHOWN = { error: { glyph: '✖', tone: 'bad' }, warning: { glyph: '▲', tone: 'warn' }, info: { glyph: '·', tone: '' }, debug: { glyph: ' ', tone: 'quiet' } }

export function shown(level) {
  return SHOWN[level] ?? SHOWN.info
}

// What a record says besides its message, as text; empty fields are nothing.
export function besides(fields) {
  return Object.entries(fields ?? {}).filter(([, value]) => value).map(([name, value]) => `${name}=${value}`).join(' ')
}

// The address of what is looked for: '/api/logs?...'. What is not chosen is left out.
export function address(wanted) {
  return `/api/logs?${new URLSearchParams(Object.entries(wanted).filter(([, value]) => value !== '' && value != null))}`
}
