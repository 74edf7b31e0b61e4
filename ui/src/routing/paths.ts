import { type Changes, queryString } from './queryString';

export const paths = {
  overview: () => '/',
  executions: (filters: Changes = {}) => `/executions${queryString(filters)}`,
  execution: (id: string, more: Changes = {}) =>
    `/executions/${encodeURIComponent(id)}${queryString(more)}`,
  workflows: () => '/workflows',
  workflow: (name: string, more: Changes = {}) =>
    `/workflows/${encodeURIComponent(name)}${queryString(more)}`,
  newWorkflow: () => '/edit',
  editWorkflow: (name: string, more: Changes = {}) =>
    `/edit/${encodeURIComponent(name)}${queryString(more)}`,
  deadLetters: (filters: Changes = {}) => `/dead-letters${queryString(filters)}`,
  approvals: () => '/approvals',
  workers: () => '/workers',
  compare: (left: string, right: string) => `/compare${queryString({ left, right })}`,
  search: (more: Changes = {}) => `/search${queryString(more)}`,
  apiKeys: () => '/api-keys',
  audit: (filters: Changes = {}) => `/audit${queryString(filters)}`,
};
