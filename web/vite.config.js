// Builds the page: three files with fixed names, so that the committed files change only where the page does, and the licences of the page's libraries.
import { readFileSync } from 'node:fs'
import { svelte } from '@sveltejs/vite-plugin-svelte'
import { licences } from './licences.js'

const names = { html: '[name][extname]', css: 'page.css' }

export default {
  plugins: [
    svelte({
      compilerOptions: { cssHash: ({ hash, css }) => `s-${hash(css)}` },
      // Most warnings name a part that a keyboard or a screen reader cannot use.
      onwarn: (warning) => { throw new Error(`${warning.code}: ${warning.message} (${warning.filename}:${warning.start?.line})`) },
    }),
    licences(readFileSync),
  ],
  build: {
    target: 'es2022',
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rollupOptions: {
      output: {
        entryFileNames: 'page.js',
        chunkFileNames: 'page-[name].js',
        assetFileNames: (asset) => (asset.names.some((name) => name.endsWith('.css')) ? names.css : names.html),
      },
    },
  },
}
