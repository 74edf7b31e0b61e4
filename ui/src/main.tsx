import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './App';
import { onConnection } from './api/connection';
import { Problem } from './api/problem';
import { applyTheme } from './theme';
import './styles/tokens.css';
import './styles/base.css';
import './styles/components.css';

applyTheme();

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      networkMode: 'always', // a server on this machine can be reached without a network
      staleTime: 1000,
      retry: (_count, error) => error instanceof Problem && error.passing,
      retryDelay: (count, error) => {
        if (error instanceof Problem && error.retryAfterSeconds) {
          return error.retryAfterSeconds * 1000;
        }
        return Math.min(500 * 2 ** count, 5000);
      },
    },
    mutations: { networkMode: 'always', retry: false },
  },
});
onConnection(() => void queries.invalidateQueries());

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
);
