// From files, a browser does not let the search read the found pages for its summaries.
if (location.protocol === 'file:') DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false

// The choice of a version. It opens the same page of the other version, or its first page if that version does not have the page.
addEventListener('DOMContentLoaded', () => {
  const box = document.querySelector('.version')
  const names = Object.keys(rodeoVersions)
  if (!box || names.length < 2) return
  const root = new URL(document.documentElement.dataset.content_root, location.href)
  const page = location.pathname.slice(root.pathname.length)
  const choice = document.createElement('select')
  choice.setAttribute('aria-label', 'Version')
  for (const name of names) choice.add(new Option(name, name, false, name === box.dataset.version))
  choice.addEventListener('change', () => {
    const there = rodeoVersions[choice.value].includes(page) ? page : 'docs/index.html'
    location.href = new URL(`../${choice.value}/${there}`, root)
  })
  box.replaceChildren('Version ', choice)
})
