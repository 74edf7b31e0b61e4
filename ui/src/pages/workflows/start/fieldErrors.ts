import { createContext } from 'react';
import type { Errors } from './values';

/** What is wrong, by place; far inside the form fields look for theirs. */
export const FieldErrorsContext = createContext<Errors>({});
