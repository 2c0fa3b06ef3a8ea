// The reason why a command is refused now for this page's user; its button shows it. Pure.
const NO_CONTROL_NEEDED = ['stop', 'ack', 'shelve', 'note', 'take', 'ask', 'release']
const EXPERT = ['abort']

// The reason that refuses all commands of this page, or null.
export function refusesAll({ document, session, stale }) {
  if (stale || !document || !session) return 'the control room does not answer'
  return session.role === 'viewer' ? 'you may look only: your role is viewer' : null
}

export function refusal(name, { document, session, stale, asked }) {
  const all = refusesAll({ document, session, stale })
  if (all) return all
  if (EXPERT.includes(name) && session.role !== 'expert') return `needs the role expert; yours is ${session.role}`
  const holder = document.lease?.holder
  if (!NO_CONTROL_NEEDED.includes(name) && holder && holder !== session.name) return `${holder} has control: ask for it`
  const reason = document.commands?.[name]
  if (reason) return reason
  return asked === name ? `${name} was asked for; it is under way` : null
}
