// The keys of the page: g and a letter opens a page; a and s go to the most urgent things, / to the search, ? to the help.
export const PAGES = [
  { key: 'r', path: '/', name: 'Run' },
  { key: 'u', path: '/runs', name: 'Runs' },
  { key: 'a', path: '/alarms', name: 'Alarms' },
  { key: 'l', path: '/logs', name: 'Logs' },
  { key: 'h', path: '/hosts', name: 'Hosts' },
  { key: 'c', path: '/config', name: 'Config' },
]

// A listener for keydown. `act` has go(path), going(true while a letter is awaited), ack(), state(), search(), help().
export function keys(act) {
  let going = false
  const awaits = (whether) => act.going((going = whether))
  return (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || event.repeat) return
    if (event.target.closest?.('input, textarea, select, [contenteditable]') || document.querySelector('dialog[open]')) return
    if (event.key === 'Shift') return
    if (going) {
      awaits(false)
      const page = PAGES.find((each) => each.key === event.key)
      if (page) {
        event.preventDefault()
        act.go(page.path)
      }
      return
    }
    const does = { g: () => awaits(true), a: act.ack, s: act.state, '/': act.search, '?': act.help }[event.key]
    if (does) {
      event.preventDefault()
      does()
    }
  }
}
