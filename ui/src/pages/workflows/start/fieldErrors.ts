import { createContext } from 'react';
import type { Errors } from './values';

/** Errors by the path of their field; fields at any depth of the form read theirs. */
export const FieldErrorsContext = createContext<Errors>({});
