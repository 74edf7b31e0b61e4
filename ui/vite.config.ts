import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { notice } from './notice.mjs';

const SERVER = 'http://127.0.0.1:8000';

// The built files are part of the Python package, so that a clone without Node has the page. CI builds them again and
// compares: nothing in here may depend on the machine or the time.
export default defineConfig({
  base: '/ui/',
  plugins: [react(), notice()],
  build: {
    outDir: '../src/penstock/ui',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0, // the page's CSP allows no data: scripts or styles
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 2000, // elk, which is loaded in a worker when a graph is drawn
  },
  worker: { format: 'es' },
  server: { proxy: { '/api': SERVER, '/health': SERVER } },
});
