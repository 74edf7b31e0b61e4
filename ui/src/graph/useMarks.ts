import { useContext } from 'react';
import { type Marks, MarksContext } from './marks';

export const useMarks = (): Marks => useContext(MarksContext);
