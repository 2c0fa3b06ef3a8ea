// A build step that writes licences.txt: the licence of every library of which the built page contains a part.
import { dirname, join } from 'node:path'
import { existsSync, readdirSync } from 'node:fs'

export function licences(readFileSync) {
  return {
    name: 'licences',
    generateBundle(_, bundle) {
      const roots = new Set()
      for (const output of Object.values(bundle)) {
        for (const id of output.moduleIds ?? []) {
          const root = packageOf(id.replace(/^\0/, '').split('?')[0])
          if (root) roots.add(root)
        }
      }
      const parts = [...roots].sort().map((root) => {
        const about = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
        const file = readdirSync(root).find((name) => /^licen[cs]e/i.test(name))
        if (!file) throw new Error(`${about.name} has no licence that could be shipped with the page`)
        return { name: about.name, text: `${about.name} ${about.version} (${about.license})\n\n${readFileSync(join(root, file), 'utf8').trim()}\n` }
      })
      parts.sort((a, b) => (a.name < b.name ? -1 : 1))
      const head = 'The page of the control room contains parts of these libraries. All else in it is under the licence of Rodeo.\n'
      this.emitFile({ type: 'asset', fileName: 'licences.txt', source: [head, ...parts.map((part) => part.text)].join('\n' + '-'.repeat(80) + '\n\n') })
    },
  }
}

// The directory of the package that a module belongs to, or null if it is ours.
function packageOf(module) {
  if (!module.includes('node_modules')) return null
  let directory = dirname(module)
  while (!directory.endsWith('node_modules')) {
    const file = join(directory, 'package.json')
    const parent = dirname(directory)
    if (existsSync(file) && (parent.endsWith('node_modules') || dirname(parent).endsWith('node_modules'))) return directory
    if (parent === directory) return null
    directory = parent
  }
  return null
}
