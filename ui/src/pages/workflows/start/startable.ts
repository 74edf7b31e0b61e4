import type { Execution, Workflow } from '../../../api/calls';

/** What a form starts: a stored version, or a document that isn't stored. */
export type Startable = Pick<Workflow, 'name' | 'definition'> & {
  version?: number;
  json?: string;
};

/** What the form begins with, such as the input of an earlier execution. */
export type InitialValues = { input?: Execution['input']; labels?: Execution['labels'] };
