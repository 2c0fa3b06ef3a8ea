// The picture of the data's way: which classes of processes stand where, what each does, and where data are held up first. Pure.
const STAGES = [
  { kind: 'emulator', title: 'Cards' },
  { kind: 'router', title: 'Router' },
  { kind: 'readout', title: 'Readout' },
]
const BAD = ['failed', 'lost']
const WORKING = { RUNNING: ['running'], PAUSED: ['running'], STOPPING: ['running', 'draining', 'done'], READY: ['ready', 'running'], CLOSING: ['ready', 'running', 'draining', 'done'] }
const FILES = /file|disk|writ|record|store|storage/i

// Of what is known; null if nothing is.
function largest(values) {
  const known = values.filter((value) => typeof value === 'number')
  return known.length ? Math.max(...known) : null
}

function least(values) {
  const known = values.filter((value) => typeof value === 'number')
  return known.length ? Math.min(...known) : null
}

// One box for each class: {name, kind, role, processes, total, good, bad, rate, fill, limited}.
function box(name, processes, document) {
  const wanted = WORKING[document.state] ?? ['ready', 'running', 'launching', 'draining', 'done', 'absent']
  return {
    name,
    kind: processes[0].kind,
    role: processes[0].role,
    processes,
    total: processes.length,
    good: processes.filter((each) => wanted.includes(each.phase)).length,
    bad: processes.filter((each) => BAD.includes(each.phase)),
    rate: { least: least(processes.map((each) => each.numbers?.rate_hz)), most: largest(processes.map((each) => each.numbers?.rate_hz)) },
    fill: largest(processes.map((each) => each.numbers?.fill)),
    limited: document.limited_by && processes.some((each) => each.name === document.limited_by.process) ? document.limited_by : null,
  }
}

// {stages: [{title, boxes}], files: {limited}, others: [boxes]}: stages that the system does not have are left out.
export function wayOf(document) {
  const classes = new Map()
  for (const each of document.processes ?? []) {
    const name = each.class ?? each.name
    if (!classes.has(name)) classes.set(name, [])
    classes.get(name).push(each)
  }
  const boxes = [...classes].map(([name, processes]) => box(name, processes, document))
  const stages = STAGES.map((stage) => ({ ...stage, boxes: boxes.filter((each) => each.kind === stage.kind) })).filter((stage) => stage.boxes.length)
  const stage = document.limited_by?.stage ?? ''
  const processes = new Set((document.processes ?? []).map((each) => each.name))
  const strange = document.limited_by && !processes.has(document.limited_by.process) ? document.limited_by : null
  return {
    stages,
    files: { limited: stage && FILES.test(stage) ? document.limited_by : null },
    others: boxes.filter((each) => !STAGES.some((one) => one.kind === each.kind)),
    limited: document.limited_by,
    strange,
  }
}

// What the recording is at, in words: {word, tone}. Before files were flushed for the first time there is nothing written *yet*.
export function recording(document) {
  const numbers = document.numbers ?? {}
  if (!document.run) return { word: 'no run', tone: 'idle' }
  if (numbers.recording === false) return { word: 'NOT recorded', tone: 'warn' }
  if (numbers.recording !== true) return { word: '–', tone: 'idle' }
  if (!numbers.bytes_written) return { word: 'REC nothing written yet', tone: 'busy' }
  return { word: 'REC', tone: 'good' }
}
