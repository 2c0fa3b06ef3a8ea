// The path of the data: the classes of processes in each stage, their rates, and the first stage that delays data. Pure.
const STAGES = [
  { kind: 'emulator', title: 'Cards' },
  { kind: 'router', title: 'Router' },
  { kind: 'readout', title: 'Readout' },
  { kind: 'supervisor', title: 'Supervisor' },
  { kind: 'node', title: 'Filter nodes' },
  { kind: 'recorder', title: 'Recorder' },
]
const BAD = ['failed', 'lost']
const WORKING = { RUNNING: ['running'], PAUSED: ['running'], STOPPING: ['running', 'draining', 'done'], READY: ['ready', 'running'], CLOSING: ['ready', 'running', 'draining', 'done'] }
const LIVE_ON = ['emulator', 'router'] // these live longer than a run, so in a run `ready` is good, too
const FILES = /file|disk|writ|record|store|storage/i

// The largest known value; null if none is known.
function largest(values) {
  const known = values.filter((value) => typeof value === 'number')
  return known.length ? Math.max(...known) : null
}

function least(values) {
  const known = values.filter((value) => typeof value === 'number')
  return known.length ? Math.min(...known) : null
}

// If the supervisor has no room for more events, it reports for the whole farm where the events are.
const NODES = 'filter nodes'

function limitedAt(processes, document) {
  const limited = document.limited_by
  if (!limited) return null
  if (limited.stage === NODES && (document.processes ?? []).some((each) => each.kind === 'node')) return processes[0].kind === 'node' ? limited : null
  return processes.some((each) => each.name === limited.process) ? limited : null
}

// One box for each class: {name, kind, role, processes, total, good, bad, rate, fill, limited}.
function box(name, processes, document, atFiles) {
  const wanted = WORKING[document.state] ?? ['ready', 'running', 'launching', 'draining', 'done']
  const taking = processes.filter((each) => !each.left_out) // a process without which the run continues counts as gone
  const good = (each) => wanted.includes(each.phase) || (each.phase === 'ready' && LIVE_ON.includes(each.kind))
  return {
    name,
    kind: processes[0].kind,
    role: processes[0].role,
    needed: processes[0].needed,
    processes,
    total: processes.length,
    good: taking.filter(good).length,
    bad: processes.filter((each) => BAD.includes(each.phase)),
    rate: { least: least(taking.map((each) => each.numbers?.rate_hz)), most: largest(taking.map((each) => each.numbers?.rate_hz)) },
    fill: largest(taking.map((each) => each.numbers?.fill)),
    limited: atFiles ? null : limitedAt(processes, document),
  }
}

// The sentence at the place where data are delayed.
export function delayedHere(limited) {
  return `first delayed here: ${limited.process}, ${limited.stage}`
}

// The sentence below the picture of a run that is delayed nowhere, or at an unknown place; else empty.
function belowOf(document) {
  if (document.limited_by || !['RUNNING', 'PAUSED'].includes(document.state)) return ''
  return document.headline && document.headline.word !== document.state ? 'data are delayed; the place is not known yet' : 'no delay'
}

// {stages: [{title, boxes}], files: {limited}, others: [boxes], strange, below}: stages that the system lacks are left out. `limited` of a box or of the files:
// data are delayed there; `strange`: a process that the document lacks delays them; `below`: the sentence below the picture.
export function wayOf(document) {
  const classes = new Map()
  for (const each of document.processes ?? []) {
    const name = each.class ?? each.name
    if (!classes.has(name)) classes.set(name, [])
    classes.get(name).push(each)
  }
  const atFiles = FILES.test(document.limited_by?.stage ?? '') ? document.limited_by : null
  const boxes = [...classes].map(([name, processes]) => box(name, processes, document, atFiles))
  const stages = STAGES.map((stage) => ({ ...stage, boxes: boxes.filter((each) => each.kind === stage.kind) })).filter((stage) => stage.boxes.length)
  const known = (document.processes ?? []).some((each) => each.name === document.limited_by?.process)
  return {
    stages,
    files: { limited: atFiles },
    others: boxes.filter((each) => !STAGES.some((one) => one.kind === each.kind)),
    strange: known || atFiles ? null : document.limited_by,
    below: belowOf(document),
  }
}

// The results of whole events as rows of a stage: [{name, value, tone}]; empty without a farm, and for unknown numbers.
export function farmRows(kind, document) {
  const farm = document.numbers?.farm
  if (!farm) return []
  const row = (name, value, tone = 'quiet') => ({ name, value, tone })
  const bad = (name, value) => (value ? [row(name, value, 'warn')] : [row(name, value)])
  if (kind === 'supervisor') return [row('accepted', farm.accepted), row('rejected', farm.rejected), row('under way', farm.under_way), ...(farm.readout_died ? [row('readout died', farm.readout_died, 'bad')] : [])]
  if (kind === 'node') return [...bad('partial', farm.partial), ...bad('assigned again', farm.reassigned), ...bad('debug', farm.debug)]
  if (kind === 'recorder') return [row('recorded', farm.recorded), row('luminosity block', farm.lumi_block)]
  return []
}

// The state of the recording in words: {word, tone}. Before the first flush of files, nothing is written *yet*. It is good only while the run takes data.
export function recording(document) {
  const numbers = document.numbers ?? {}
  if (!document.run) return { word: 'no run', tone: 'idle' }
  if (numbers.recording === false) return { word: 'NOT recorded', tone: 'warn' }
  if (numbers.recording !== true) return { word: '–', tone: 'idle' }
  if (!numbers.bytes_written) return { word: 'REC nothing written yet', tone: 'busy' }
  return { word: 'REC', tone: document.headline?.word === 'NO DATA' ? 'warn' : 'good' }
}

// Bytes per second that are written; unknown before the first flush of files.
export function toDisk(numbers) {
  return numbers.recording === true && !numbers.bytes_written ? null : numbers.bytes_written_per_second
}
