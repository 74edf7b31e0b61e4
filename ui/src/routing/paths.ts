import { type Changes, queryString } from './queryString';

export const paths = {
  overview: () => '/',
  executions: (filters: Changes = {}) => `/executions${queryString(filters)}`,
  execution: (id: string, more: Changes = {}) =>
    `/executions/${encodeURIComponent(id)}${queryString(more)}`,
  workflows: () => '/workflows',
  workflow: (name: string, more: Changes = {}) =>
    `/workflows/${encodeURIComponent(name)}${queryString(more)}`,
  deadLetters: (filters: Changes = {}) => `/dead-letters${queryString(filters)}`,
  workers: () => '/workers',
};
