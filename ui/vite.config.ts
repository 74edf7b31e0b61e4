import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { notice } from './notice.mjs';

const SERVER = 'http://127.0.0.1:8000';
const SHARED_PACKAGES =
  /node_modules\/(react|react-dom|scheduler|@tanstack|openapi-fetch|eventsource-parser|lucide-react)\//;
const SHARED_SOURCES = /ui\/src\/((api|components|routing)\/|[^/]+\.ts$)/;

// The built files are part of the Python package, so that a clone without Node has the UI. CI
// builds them again and compares: nothing in here may depend on the machine or the time.
export default defineConfig(({ command }) => ({
  // Built files refer to each other by relative addresses: the server puts them into a folder named
  // after their content, and writes that folder into index.html (docs/decisions/018-ui-bundles.md).
  base: command === 'build' ? './' : '/ui/',
  plugins: [react(), notice()],
  build: {
    outDir: '../src/penstock/ui',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0, // the UI's CSP allows no data: scripts or styles
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 2000, // elk, which is loaded in a worker when a graph is drawn
    rolldownOptions: {
      output: {
        // Without a hash of the content: a change in one file must not rename all files that import
        // it.
        entryFileNames: 'assets/[name].js',
        chunkFileNames: 'assets/[name].js',
        assetFileNames: 'assets/[name][extname]',
        // What most pages share is in chunks of fixed names. Else each set of pages that share a
        // module would be a chunk, named after any module in it, and a new import would rename it.
        codeSplitting: {
          groups: [
            { name: 'vendor', test: SHARED_PACKAGES },
            { name: 'shared', test: SHARED_SOURCES },
          ],
        },
      },
    },
  },
  worker: { format: 'es' },
  server: { proxy: { '/api': SERVER, '/health': SERVER } },
}));
